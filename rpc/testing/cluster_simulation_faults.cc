#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "rpc/testing/cluster_simulation.h"

namespace hawser::rpc {
namespace {

// Maximum one-way delay of a slow store, and maximum number of slow stores.
constexpr int kMaxStoreDelayMs = 200;
constexpr int kMaxStoreCalls = 6;

}  // namespace

void ClusterSimulation::TraverseStoreLink(int worker) {
  if (!workers_[worker].slow_store || num_store_calls_ == kMaxStoreCalls) {
    return;
  }
  const absl::Duration delay = std::min(
      store_delay_left_, absl::Milliseconds(random_.Below(kMaxStoreDelayMs)));
  store_delay_left_ -= delay;
  ++num_store_calls_;
  const async::MonotonicTime end = async::AddDelay(clock_.Now(), delay);
  // On another thread, since the state of this one belongs to the blocked task:
  // whether it records gradients, for example.
  std::thread others([this, end] {
    while (clock_.Now() < end) Tick();
  });
  others.join();
  --num_store_calls_;
}

void ClusterSimulation::SetStorePartitioned(Worker& worker, bool partitioned) {
  worker.link->SetPartitioned(partitioned);
  worker.store_failed |= partitioned;
}

void ClusterSimulation::FillStore(bool full) {
  store_is_full_ = full;
  for (Worker& worker : workers_) {
    if (worker.link == nullptr) continue;
    worker.link->SetFull(full);
    worker.store_failed |= full;
  }
}

void ClusterSimulation::JumpClock(int worker, absl::Duration time) {
  machines_[worker]->JumpForward(time);
}

void ClusterSimulation::Suspend(int index, absl::Duration time) {
  Worker& worker = workers_[index];
  if (worker.agent == nullptr || worker.resume_time.has_value()) return;
  machines_[index]->Suspend();
  SetStorePartitioned(worker, true);
  for (int i = 0; i < num_workers(); ++i) {
    if (i != index && agent(i) != nullptr) Partition(index, i);
  }
  worker.resume_time = async::AddDelay(clock_.Now(), time);
}

void ClusterSimulation::Resume(int index) {
  Worker& worker = workers_[index];
  if (!worker.resume_time.has_value()) return;
  worker.resume_time.reset();
  machines_[index]->Resume();
  SetStorePartitioned(worker, false);
  for (int i = 0; i < num_workers(); ++i) {
    if (i != index && agent(i) != nullptr) Heal(index, i);
  }
}

void ClusterSimulation::AttendSuspended() {
  for (int i = 0; i < num_workers(); ++i) {
    if (workers_[i].resume_time.has_value() &&
        clock_.Now() >= *workers_[i].resume_time) {
      Note("resume " + workers_[i].name);
      Resume(i);
    }
  }
}

void ClusterSimulation::Block(int from, int to, bool blocked) {
  const std::pair<std::string, std::string> way{agent(from)->info().address,
                                                agent(to)->info().address};
  network_.Block(way.first, way.second, blocked);
  if (blocked) blocked_.insert(way);
}

void ClusterSimulation::HealAll() {
  network_.SetFaults({});
  FillStore(false);
  for (int i = 0; i < num_workers(); ++i) Resume(i);
  for (const auto& [from, to] : blocked_) network_.Block(from, to, false);
  for (Worker& worker : workers_) {
    worker.slow_store = false;
    if (worker.agent != nullptr) SetStorePartitioned(worker, false);
  }
}

bool ClusterSimulation::OthersStay(int index) const {
  return std::any_of(
      workers_.begin(), workers_.end(), [&](const Worker& worker) {
        return &worker != &workers_[index] && worker.agent != nullptr &&
               !worker.leaving.has_value();
      });
}

void ClusterSimulation::RandomFault() {
  whole_since_.reset();
  const int index = static_cast<int>(random_.Below(num_workers()));
  Worker& worker = workers_[index];
  const int other_index = static_cast<int>(random_.Below(num_workers()));
  Worker& other = workers_[other_index];
  const bool runs = worker.agent != nullptr;
  const bool both = runs && other.agent != nullptr && &worker != &other;
  switch (random_.Below(20)) {
    case 0:
      if (!OthersStay(index)) break;
      Note("kill " + worker.name);
      Kill(index);
      break;
    case 1:
    case 2:
      RestartDeparted();
      break;
    case 3:
    case 4:
      if (OthersStay(index)) Leave(index);
      break;
    case 5:
      if (OthersStay(index)) Stop(index);
      break;
    case 6:
      if (!both) break;
      Note(absl::StrCat("partition ", worker.name, " ", other.name));
      Partition(index, other_index);
      break;
    case 7:
      if (!both) break;
      Note(absl::StrCat("block ", worker.name, " to ", other.name));
      Block(index, other_index, true);
      break;
    case 8:
      if (!both) break;
      Heal(index, other_index);
      break;
    case 9:
      if (!runs) break;
      Note("cut the store of " + worker.name);
      PartitionStore(index);
      break;
    case 10:
      if (!runs) break;
      HealStore(index);
      SlowDownStore(index, false);
      break;
    case 11:
      if (!runs) break;
      Note("slow down the store of " + worker.name);
      SlowDownStore(index, true);
      break;
    case 12:
      network_.SetFaults({.drop_request = 0.2 * random_.Uniform(),
                          .drop_reply = 0.2 * random_.Uniform(),
                          .duplicate_request = 0.3 * random_.Uniform(),
                          .duplicate_reply = 0.3 * random_.Uniform(),
                          .min_delay = absl::ZeroDuration(),
                          .max_delay = absl::Milliseconds(random_.Below(200))});
      break;
    case 13:
      if (!both) break;
      network_.Break(worker.agent->info().address, other.agent->info().address);
      break;
    case 14: {
      const absl::Duration time = absl::Milliseconds(random_.Below(10'000));
      Note(absl::StrCat("the clock of ", worker.name, " jumps by ",
                        absl::FormatDuration(time)));
      JumpClock(index, time);
      break;
    }
    case 15:
      if (!runs) break;
      Note("suspend " + worker.name);
      Suspend(index, absl::Milliseconds(random_.Below(6000)));
      break;
    case 16:
      Note(store_is_full_ ? "the disk of the store has room"
                          : "the disk of the store is full");
      FillStore(!store_is_full_);
      break;
    default:
      break;
  }
}

void ClusterSimulation::CheckStore() {
  const auto has_segment = [this](int64_t segment) {
    const std::string key =
        absl::StrCat("rpc/", AgentOptions().job, "/members/", segment);
    return store_.Check({&key, 1}).value_or(false);
  };
  int64_t num_segments = 0;
  while (has_segment(num_segments + 1)) ++num_segments;
  // The kind of the job; and name, rank and lease of each worker.
  const int64_t expected = 1 + num_segments + int64_t{3} * num_workers();
  const absl::StatusOr<int64_t> num_keys = store_.NumKeys();
  if (num_keys.value_or(-1) == expected) return;
  Fail(absl::StrCat("the store has ", num_keys.value_or(-1),
                    " keys instead of ", expected));
}

int ClusterSimulation::CountReportsOf(int worker) {
  const uint64_t reporter = ToNumber(agent(worker)->info().incarnation);
  const auto events = log_.ReadAll();
  if (!events.ok()) {
    Fail(events.status().ToString());
    return 0;
  }
  return static_cast<int>(
      std::count_if(events->begin(), events->end(), [&](const auto& event) {
        return event.has_lost() && event.lost().reporter() == reporter;
      }));
}

}  // namespace hawser::rpc

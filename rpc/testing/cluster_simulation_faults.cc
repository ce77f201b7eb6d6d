#include <algorithm>

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
  while (clock_.Now() < end) Tick();
  --num_store_calls_;
}

void ClusterSimulation::SetStorePartitioned(Worker& worker, bool partitioned) {
  worker.link->SetPartitioned(partitioned);
  worker.store_failed |= partitioned;
}

void ClusterSimulation::Block(int from, int to, bool blocked) {
  const std::pair<std::string, std::string> way{agent(from)->info().address,
                                                agent(to)->info().address};
  network_.Block(way.first, way.second, blocked);
  if (blocked) blocked_.insert(way);
}

void ClusterSimulation::HealAll() {
  network_.SetFaults({});
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
  const int index = static_cast<int>(random_.Below(num_workers()));
  Worker& worker = workers_[index];
  const int other_index = static_cast<int>(random_.Below(num_workers()));
  Worker& other = workers_[other_index];
  const bool runs = worker.agent != nullptr;
  const bool both = runs && other.agent != nullptr && &worker != &other;
  switch (random_.Below(16)) {
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
    default:
      break;
  }
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

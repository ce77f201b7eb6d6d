#include "rpc/testing/cluster_simulation.h"

#include <algorithm>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "rpc/agent/current_call.h"
#include "rpc/errors/error_detail.h"
#include "rpc/functions/function.h"
#include "rpc/membership/worker_directory.h"

namespace hawser::rpc {
namespace {

constexpr Function<void(int64_t)> kTouch{"cluster_simulation.Touch"};
constexpr absl::Duration kTick = absl::Milliseconds(20);
// The silent limit plus one round.
constexpr absl::Duration kSettling = absl::Milliseconds(3500);
// Longer than any wait, so that it never ends a leave.
constexpr absl::Duration kShutdownTimeout = absl::Seconds(60);
// Time after the last fault within which a leave ends.
constexpr absl::Duration kRecovery = absl::Seconds(10);
// Limit on the delay of slow stores in one tick; a worker that keeps calling
// its store would otherwise never finish the tick.
constexpr absl::Duration kMaxStoreDelayPerTick = absl::Seconds(1);

}  // namespace

ClusterSimulation::ClusterSimulation(uint64_t seed, Options options)
    : random_(seed),
      incarnations_(seed * 104729 + 1),
      options_(std::move(options)),
      network_(
          {.seed = seed * 7919 + 1, .executor = &executor_, .clock = &clock_}),
      workers_(options_.num_workers) {
  const absl::Status registered =
      registry_.Register(kTouch, [this](int64_t call) { Executed(call); });
  if (!registered.ok()) Fail(registered.ToString());
  for (int i = 0; i < num_workers(); ++i) {
    workers_[i].name = absl::StrCat("w", i);
    machines_.push_back(std::make_unique<async::MachineClock>(&clock_));
  }
}

ClusterSimulation::~ClusterSimulation() {
  for (int i = 0; i < num_workers(); ++i) Kill(i);
}

void ClusterSimulation::Note(const std::string& text) const {
  if (!options_.verbose) return;
  std::cerr << absl::ToDoubleSeconds(
                   async::TimeBetween(async::MonotonicTime(), clock_.Now()))
            << " " << text << "\n";
}

void ClusterSimulation::Fail(const std::string& text) {
  if (text.empty()) return;
  Note("FAILED " + text);
  if (failure_.empty()) failure_ = text;
}

void ClusterSimulation::Tick() {
  clock_.AdvanceBy(kTick);
  executor_.RunAll();
}

void ClusterSimulation::Advance(absl::Duration time) {
  for (absl::Duration t; t < time; t += kTick) {
    store_delay_left_ = kMaxStoreDelayPerTick;
    Tick();
    AttendSuspended();
    AttendLeaving();
  }
}

std::unique_ptr<SimulatedStoreLink> ClusterSimulation::NewLink(int index) {
  return std::make_unique<SimulatedStoreLink>(
      &store_,
      SimulatedStoreLink::Hooks{
          .on_way = [this, index] { TraverseStoreLink(index); },
          .on_wait = [this] { return turns_ != nullptr && turns_->Yield(); }});
}

AgentOptions ClusterSimulation::OptionsOf(int index, SimulatedStoreLink& link) {
  AgentOptions options;
  options.name = workers_[index].name;
  options.rank = index;
  if (options_.group) options.world_size = num_workers();
  options.store = &link;
  options.transport = network_.NewTransport(machines_[index].get());
  options.registry = &registry_;
  options.clock = machines_[index].get();
  options.executor = &executor_;
  options.incarnation = Incarnation{incarnations_.Next()};
  options.shutdown_timeout = kShutdownTimeout;
  // Do not wait for a holder's lease to lapse.
  options.start_timeout = absl::ZeroDuration();
  if (options_.configure != nullptr) options_.configure(options);
  return options;
}

void ClusterSimulation::Install(int index,
                                std::unique_ptr<SimulatedStoreLink> link,
                                std::unique_ptr<Agent> agent) {
  Worker& worker = workers_[index];
  worker.link = std::move(link);
  worker.agent = std::move(agent);
  worker.store_failed = false;
  worker.name_is_free = false;
  const Incarnation incarnation = worker.agent->info().incarnation;
  Note(absl::StrCat(worker.name, " starts as ", ToString(incarnation)));
  worker.agent->WatchMembers([this, incarnation](const MemberEvent& event) {
    views_.Add(incarnation, event);
  });
}

bool ClusterSimulation::Start(int index) {
  std::unique_ptr<SimulatedStoreLink> link = NewLink(index);
  link->SetFull(store_is_full_);
  absl::StatusOr<std::unique_ptr<Agent>> agent =
      Agent::Start(OptionsOf(index, *link));
  if (!agent.ok()) {
    const bool expected = store_is_full_
                              ? absl::IsResourceExhausted(agent.status())
                              : absl::IsAlreadyExists(agent.status()) &&
                                    !workers_[index].name_is_free;
    if (!expected) {
      Fail(absl::StrCat("start: ", agent.status().ToString()));
    }
    return false;
  }
  Install(index, std::move(link), *std::move(agent));
  return true;
}

void ClusterSimulation::StartTogether() {
  DeterministicThreads turns;
  std::vector<std::unique_ptr<SimulatedStoreLink>> links;
  std::vector<absl::StatusOr<std::unique_ptr<Agent>>> agents(workers_.size());
  std::vector<std::function<void()>> starts;
  for (int i = 0; i < num_workers(); ++i) {
    links.push_back(NewLink(i));
    starts.emplace_back([this, i, &links, &agents] {
      agents[i] = Agent::Start(OptionsOf(i, *links[i]));
    });
  }
  turns_ = &turns;
  turns.Run(std::move(starts));
  turns_ = nullptr;
  for (int i = 0; i < num_workers(); ++i) {
    if (agents[i].ok()) {
      Install(i, std::move(links[i]), *std::move(agents[i]));
    } else {
      Fail(absl::StrCat("start: ", agents[i].status().ToString()));
    }
  }
}

void ClusterSimulation::RestartDeparted() {
  for (int i = 0; i < num_workers(); ++i) {
    Worker& worker = workers_[i];
    if (worker.agent != nullptr && !worker.leaving.has_value() &&
        DeclaredLost(worker)) {
      Kill(i);
    }
    if (worker.agent == nullptr) Start(i);
  }
}

void ClusterSimulation::SayThatItEnds(const Worker& worker) {
  const Incarnation incarnation = worker.agent->info().incarnation;
  if (!left_.contains(incarnation)) ended_.insert(incarnation);
  if (options_.on_end != nullptr) options_.on_end(worker.agent->info());
}

void ClusterSimulation::Drop(Worker& worker) {
  const std::optional<async::Future<void>> leaving =
      std::exchange(worker.leaving, std::nullopt);
  worker.stop_time.reset();
  worker.agent.reset();
  worker.slow_store = false;
  if (leaving.has_value() && !leaving->ready()) {
    Fail(absl::StrCat(worker.name, " ended and its leaving did not"));
  }
}

void ClusterSimulation::Kill(int index) {
  Worker& worker = workers_[index];
  if (worker.agent == nullptr) return;
  Resume(index);
  SayThatItEnds(worker);
  SetStorePartitioned(worker, true);
  network_.Crash(worker.agent->info().address);
  Drop(worker);
}

void ClusterSimulation::Stop(int index) {
  Worker& worker = workers_[index];
  if (worker.agent == nullptr) return;
  Note("stop " + worker.name);
  Resume(index);
  SayThatItEnds(worker);
  const std::optional<async::Future<void>> leaving = worker.leaving;
  const bool left = leaving.has_value() && leaving->ready();
  const absl::Status status = worker.agent->Shutdown(/*graceful=*/false);
  if (!status.ok()) Fail(absl::StrCat("stop: ", status.ToString()));
  if (leaving.has_value() && !left &&
      (!leaving->ready() || !absl::IsCancelled(leaving->result()))) {
    Fail("a leave was cut short and does not say so");
  }
  worker.name_is_free = !worker.link->partitioned() && !worker.link->full();
  Drop(worker);
}

void ClusterSimulation::Leave(int index) {
  Worker& worker = workers_[index];
  if (worker.agent == nullptr || worker.leaving.has_value()) return;
  Note(absl::StrCat("leave ", worker.name, ", ",
                    worker.agent->num_client_calls(), " own calls, ",
                    worker.agent->num_server_calls(), " served"));
  worker.store_failed = worker.link->partitioned() || worker.link->full();
  worker.leaving = worker.agent->Leave();
}

bool ClusterSimulation::MayEndSo(const Worker& worker,
                                 const absl::Status& status) const {
  if (worker.store_failed &&
      (absl::IsUnavailable(status) || absl::IsResourceExhausted(status))) {
    return true;
  }
  // Faults lasted for almost as long as it may wait.
  if (absl::IsDeadlineExceeded(status) &&
      (!whole_since_.has_value() ||
       clock_.Now() < async::AddDelay(*whole_since_, kRecovery))) {
    return true;
  }
  if (!options_.group) return false;
  if (absl::IsFailedPrecondition(status)) return DeclaredLost(worker);
  const std::optional<ErrorDetail> detail = GetErrorDetail(status);
  return absl::IsUnavailable(status) && detail.has_value() &&
         ended_.contains(detail->incarnation);
}

void ClusterSimulation::AttendLeaving() {
  for (int i = 0; i < num_workers(); ++i) {
    Worker& worker = workers_[i];
    if (!worker.leaving.has_value() || !worker.leaving->ready()) continue;
    if (!worker.stop_time.has_value()) {
      const absl::Status& status = worker.leaving->result();
      Note(absl::StrCat(worker.name, " has left: ", status.ToString()));
      if (status.ok()) {
        left_.insert(worker.agent->info().incarnation);
      } else if (!MayEndSo(worker, status)) {
        Fail(absl::StrCat("leave: ", status.ToString()));
      }
      worker.stop_time =
          async::AddDelay(clock_.Now(), absl::Milliseconds(random_.Below(500)));
    } else if (clock_.Now() >= *worker.stop_time) {
      FinishLeaving(i);
    }
  }
}

std::optional<WorkerInfo> ClusterSimulation::HolderOf(int worker) {
  const absl::StatusOr<std::optional<WorkerInfo>> holder =
      WorkerDirectory(&store_, AgentOptions().job)
          .FindByName(workers_[worker].name);
  if (!holder.ok()) Fail(holder.status().ToString());
  return holder.value_or(std::nullopt);
}

void ClusterSimulation::FinishLeaving(int index) {
  Worker& worker = workers_[index];
  Resume(index);
  SayThatItEnds(worker);
  const absl::Status left = worker.leaving->result();
  const Incarnation incarnation = worker.agent->info().incarnation;
  if (worker.agent->Shutdown() != left) {
    Fail("Shutdown does not say what came of Leave");
  }
  const std::optional<WorkerInfo> holder = HolderOf(index);
  if (left.ok() && holder.has_value() && holder->incarnation == incarnation) {
    Fail(absl::StrCat(worker.name, " has left and keeps its name"));
  }
  worker.name_is_free = left.ok();
  Drop(worker);
}

int64_t ClusterSimulation::Call(int from, int to, absl::Duration timeout) {
  const int64_t call = calls_.Begin();
  Track(call, agent(from)->Async(workers_[to].name, {.timeout = timeout},
                                 kTouch, call));
  return call;
}

void ClusterSimulation::CallAll() {
  for (int from = 0; from < num_workers(); ++from) {
    for (int to = 0; to < num_workers(); ++to) Call(from, to);
  }
}

void ClusterSimulation::Executed(int64_t call) {
  const Incarnation self = CurrentCall::Get()->agent().info().incarnation;
  Note(absl::StrCat("call ", call, " runs at ", ToString(self)));
  Fail(calls_.Executed(call, self));
  if (left_.contains(self)) {
    Fail(absl::StrCat("call ", call, " ran where all had ended"));
  }
}

void ClusterSimulation::Track(int64_t call, const async::Future<void>& future) {
  future.OnReady(
      [this, call](const absl::Status& status) { calls_.Ended(call, status); });
}

void ClusterSimulation::ExpectConvergence(absl::Duration limit) {
  Note("all is whole again");
  HealAll();
  whole_since_ = clock_.Now();
  AwaitLeaving();
  const async::MonotonicTime mended = clock_.Now();
  // Let failure detection of earlier silences finish.
  Advance(kSettling);
  while (!Converged()) {
    if (async::TimeBetween(mended, clock_.Now()) > limit) {
      Fail(absl::StrCat("no convergence: ", Views()));
      return;
    }
    RestartDeparted();
    Advance(absl::Milliseconds(200));
  }
  ExpectReachability();
}

void ClusterSimulation::ExpectReachability() {
  std::vector<int64_t> calls;
  for (int from = 0; from < num_workers(); ++from) {
    for (int to = 0; to < num_workers(); ++to) calls.push_back(Call(from, to));
  }
  Advance(absl::Seconds(1));
  for (const int64_t call : calls) {
    const absl::Status& outcome = calls_.outcome(call);
    if (outcome.ok()) continue;
    Fail(absl::StrCat("after convergence: ", outcome.ToString()));
  }
}

void ClusterSimulation::AwaitLeaving() {
  const auto leaves = [](const Worker& worker) {
    return worker.leaving.has_value();
  };
  const async::MonotonicTime limit =
      async::AddDelay(clock_.Now(), kShutdownTimeout + absl::Seconds(1));
  while (std::any_of(workers_.begin(), workers_.end(), leaves)) {
    if (clock_.Now() > limit) {
      Fail("a leave goes on after its deadline");
      return;
    }
    Advance(absl::Milliseconds(200));
  }
}

void ClusterSimulation::CheckHistory() {
  Fail(calls_.Check());
  Fail(views_.Check(log_));
}

bool ClusterSimulation::Sees(int observer, int worker) {
  return views_.MembersOf(agent(observer)->info().incarnation)
      .contains(agent(worker)->info().incarnation);
}

bool ClusterSimulation::DeclaredLost(const Worker& worker) const {
  return worker.agent->DebugInfo()["agent.declared_lost"] == "1";
}

bool ClusterSimulation::Converged() {
  std::set<Incarnation> all;
  for (const Worker& worker : workers_) {
    if (worker.agent == nullptr || worker.leaving.has_value() ||
        DeclaredLost(worker)) {
      return false;
    }
    all.insert(worker.agent->info().incarnation);
  }
  for (Incarnation member : all) {
    if (views_.MembersOf(member) != all) return false;
  }
  // Nor may a worker have found another lost without the others knowing.
  for (const Worker& worker : workers_) {
    for (const Worker& other : workers_) {
      if (worker.agent->IsLost(other.agent->info())) return false;
    }
  }
  return true;
}

std::string ClusterSimulation::Views() {
  std::string text;
  for (const Worker& worker : workers_) {
    absl::StrAppend(&text, "\n  ", worker.name, ": ");
    if (worker.agent == nullptr) {
      absl::StrAppend(&text, "not running");
      continue;
    }
    absl::StrAppend(&text, worker.leaving.has_value() ? "leaving; " : "",
                    DeclaredLost(worker) ? "lost; " : "",
                    views_.Text(worker.agent->info().incarnation));
  }
  return text;
}

}  // namespace hawser::rpc

// A worker that leaves its job, for unit tests.

#ifndef HAWSER_RPC_TESTING_FAKES_LEAVING_WORKER_H_
#define HAWSER_RPC_TESTING_FAKES_LEAVING_WORKER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/testing/manual_executor.h"
#include "async/testing/simulated_clock.h"
#include "rpc/agent/leave/graceful_leave.h"
#include "rpc/agent/service.h"
#include "rpc/agent/state/agent_state.h"
#include "rpc/identity/worker_info.h"
#include "rpc/testing/fakes/fake_leaving_member.h"
#include "rpc/testing/fakes/fake_service_host.h"
#include "rpc/testing/simulated_store_link.h"
#include "store/store.h"

namespace hawser::rpc {

// A GracefulLeave with two services and a FakeLeavingMember. Its steps run when
// the test runs `control`. For one thread.
class LeavingWorker {
 public:
  static constexpr absl::Duration kTimeout = absl::Seconds(20);
  static constexpr absl::Duration kHeartbeatInterval = absl::Milliseconds(500);

  // A service that drains as the test says, and records its steps.
  class FakeService final : public Service {
   public:
    FakeService(std::string name, std::vector<std::string>* events)
        : name_(std::move(name)), events_(*events) {}

    // Drain is complete at once, unless a future is set here.
    async::Future<void> drained =
        async::MakeReadyFuture<void>(absl::OkStatus());
    // Runs in Drain, unless null.
    std::function<void()> on_drain;
    // Set by Drain.
    async::MonotonicTime deadline;

    std::string_view name() const override { return name_; }
    absl::Status Start(ServiceHost&) override { return absl::OkStatus(); }
    async::Future<void> Drain(async::MonotonicTime drain_deadline) override {
      events_.push_back("drain " + name_);
      deadline = drain_deadline;
      if (on_drain != nullptr) on_drain();
      return drained;
    }
    void OnLeft() override { events_.push_back("left " + name_); }

   private:
    const std::string name_;
    std::vector<std::string>& events_;
  };

  // Without `world_size` the job is dynamic. `store` and `clock` must outlive
  // the worker.
  LeavingWorker(int rank, std::optional<int> world_size, store::Store* store,
                async::SimulatedClock* clock)
      : self(FakeServiceHost::MakeWorker(rank)),
        link(store),
        member({.workers = WorkersOf(world_size.value_or(0)),
                .store = &link,
                .events = &events}),
        state(std::make_shared<AgentState>(
            AgentState::Options{.self = self,
                                .job = "job",
                                .clock = clock,
                                .executor = &executor,
                                .control_executor = &control})),
        leave(std::make_shared<GracefulLeave>(
            GracefulLeave::Options{.state = state,
                                   .member = &member,
                                   .services = &services,
                                   .static_group = world_size.has_value(),
                                   .heartbeat_interval = kHeartbeatInterval,
                                   .timeout = kTimeout})) {
    state->SetPhase(AgentState::Phase::kRunning);
  }
  ~LeavingWorker() {
    leave->Abandon();
    // A wait for calls to end keeps the leave alive, and that the counts.
    while (state->outbound_calls().value() > 0) EndCall();
    while (state->inbound_calls().value() > 0) state->inbound_calls().End();
  }
  LeavingWorker(const LeavingWorker&) = delete;
  LeavingWorker& operator=(const LeavingWorker&) = delete;

  bool ended() const { return leave->future().ready(); }
  // kUnknown before the end.
  absl::Status result() const {
    return ended() ? leave->future().result()
                   : absl::UnknownError("has not ended");
  }

  // One of this worker's own calls.
  void BeginCall() { state->BeginOutboundCall(); }
  void EndCall() { state->outbound_calls().End(); }

  const WorkerInfo self;
  // Steps of the member and of the services.
  std::vector<std::string> events;
  SimulatedStoreLink link;
  FakeLeavingMember member;
  // Not used by the leave, unlike control.
  async::ManualExecutor executor;
  async::ManualExecutor control;
  FakeService first{"first", &events};
  FakeService second{"second", &events};
  const std::vector<Service*> services{&first, &second};
  const std::shared_ptr<AgentState> state;
  const std::shared_ptr<GracefulLeave> leave;

 private:
  static std::vector<WorkerInfo> WorkersOf(int world_size) {
    std::vector<WorkerInfo> workers;
    for (int rank = 0; rank < world_size; ++rank) {
      workers.push_back(FakeServiceHost::MakeWorker(rank));
    }
    return workers;
  }
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TESTING_FAKES_LEAVING_WORKER_H_

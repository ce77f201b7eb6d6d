// Fixture for tests of inbound calls.

#ifndef HAWSER_RPC_TESTING_FAKES_INBOUND_TEST_FIXTURE_H_
#define HAWSER_RPC_TESTING_FAKES_INBOUND_TEST_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/testing/manual_executor.h"
#include "async/testing/simulated_clock.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/inbound/admission.h"
#include "rpc/agent/inbound/inbound_call.h"
#include "rpc/agent/state/agent_state.h"
#include "rpc/agent/state/call_observation.h"
#include "rpc/identity/worker_info.h"
#include "rpc/peers/call_quota.h"
#include "rpc/peers/peer.h"
#include "rpc/testing/fakes/fake_incoming_call.h"
#include "rpc/testing/fakes/fake_sender_directory.h"
#include "rpc/testing/fakes/fake_service_host.h"

namespace hawser::rpc {

// The state of a running agent without network, and the calls that its peers
// make. Posted closures run when the test runs executor_.
class InboundTestFixture : public testing::Test {
 protected:
  using End = FakeIncomingCall::End;
  using Kind = FakeIncomingCall::End::Kind;

  explicit InboundTestFixture(CallObservers observers = {})
      : state_(std::make_shared<AgentState>(
            AgentState::Options{.self = self_,
                                .job = "job",
                                .clock = &clock_,
                                .executor = &executor_,
                                .control_executor = &executor_,
                                .observers = std::move(observers)})) {
    state_->SetPhase(AgentState::Phase::kRunning);
  }

  // A request of peer_ to this worker. Number 0 is that of a call that may run
  // twice.
  FakeRequest RequestFromPeer(uint64_t call_id = 1) const {
    return {.header = {.job = "job",
                       .source = peer_.name,
                       .source_rank = peer_.id,
                       .source_incarnation = peer_.incarnation,
                       .destination = self_.name,
                       .destination_incarnation = self_.incarnation,
                       .call_id = call_id,
                       .autograd = std::nullopt}};
  }

  // Returns a call with `request`, and sets `end`.
  std::unique_ptr<IncomingCall> Incoming(
      FakeRequest request, std::shared_ptr<const End>& end,
      FakeIncomingCall::Options options = FakeIncomingCall::Options()) const {
    absl::StatusOr<Payload> payload = Encode(std::move(request));
    EXPECT_THAT(payload, async::IsOk());
    auto incoming = std::make_unique<FakeIncomingCall>(
        payload.ok() ? *std::move(payload) : Payload(), std::move(options));
    end = incoming->end();
    return incoming;
  }

  // A call that was admitted.
  struct Admitted {
    std::shared_ptr<InboundCall> call;
    std::shared_ptr<const End> end;
  };
  Admitted Admit(
      FakeRequest request, CallQuota* quota = nullptr,
      FakeIncomingCall::Options options = FakeIncomingCall::Options()) {
    Admitted admitted;
    admitted.call = std::make_shared<InboundCall>(
        state_, Incoming(std::move(request), admitted.end, std::move(options)));
    EXPECT_THAT(
        Admission(state_, &senders_)
            .Admit(*admitted.call, {.begins_work = true, .quota = quota}),
        async::IsOk());
    return admitted;
  }

  const WorkerInfo self_ = FakeServiceHost::MakeWorker(0);
  const WorkerInfo peer_ = FakeServiceHost::MakeWorker(1);
  async::SimulatedClock clock_;
  async::ManualExecutor executor_;
  FakeSenderDirectory senders_;
  const std::shared_ptr<Peer> sender_ = senders_.AddPeer(peer_);
  const std::shared_ptr<AgentState> state_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TESTING_FAKES_INBOUND_TEST_FIXTURE_H_

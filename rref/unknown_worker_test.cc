// Messages that name workers which are not in the job.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/rref.pb.h"
#include "rpc/testing/agent_test_fixture.h"
#include "rpc/transport/transfer_counters.h"
#include "rpc/transport/transport.h"
#include "rpc/wire/message_codec.h"
#include "rref/rref.h"
#include "rref/rref_service.h"
#include "rref/wire_ids.h"

namespace hawser::rref {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

inline constexpr rpc::Function<int64_t(RRef<int64_t>)> kFetch{
    "unknown_worker_test.Fetch"};

class UnknownWorkerTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(job_.registry().Register(
                    kFetch, [](RRef<int64_t> x) { return x.ToHere(); }),
                IsOk());
    job_.StartAll(2, [](int, rpc::AgentOptions& options) {
      options.services.push_back(std::make_unique<RRefService>());
    });
  }

  // References still work, and the tables keep nothing of the test.
  void TearDown() override {
    {
      auto one = MakeLocal<int64_t>(job_.agent(1), 7);
      ASSERT_THAT(one, IsOk());
      EXPECT_THAT(job_.agent(1).Sync("w0", kFetch, *one), IsOkAndHolds(7));
    }
    for (int i = 0; i < 2; ++i) {
      // Checked before the shutdown, because a departed worker counts as lost.
      const Protocol::Counts counts = protocol(i).counts();
      EXPECT_EQ(counts.user.lost_workers, 0u) << "worker " << i;
      EXPECT_EQ(counts.owner.lost_workers, 0u) << "worker " << i;
    }
    for (const absl::Status& status : job_.ShutdownAll()) {
      EXPECT_THAT(status, IsOk());
    }
    for (int i = 0; i < 2; ++i) {
      const Protocol::Counts counts = protocol(i).counts();
      EXPECT_EQ(counts.user.users, 0u) << "worker " << i;
      EXPECT_EQ(counts.owner.owners, 0u) << "worker " << i;
      EXPECT_EQ(counts.control_operations, 0u) << "worker " << i;
    }
  }

  Protocol& protocol(int i) {
    return *job_.agent(i).service<RRefService>()->protocol();
  }
  rpc::WorkerRun run(int i) { return RunOf(job_.agent(i).info()); }

  // Worker 1 gives worker 0 a reference of `owner`. Returns the status of
  // receiving it.
  absl::Status ReceiveReferenceOf(rpc::WorkerRun owner) {
    const ForkId fork{{run(1), ++last_number_}};
    v1::RRefReference reference;
    *reference.mutable_rref() = ToProto(GlobalId{owner, last_number_});
    *reference.mutable_fork() = ToProto(fork);
    reference.mutable_owner()->set_worker(owner.id.value());
    reference.mutable_owner()->set_incarnation(
        rpc::ToNumber(owner.incarnation));
    reference.set_owner_name("nobody");
    absl::StatusOr<Protocol::ReceivedReference> received =
        protocol(0).Receive(reference, job_.agent(1).info());
    if (!received.ok()) return received.status();
    if (!received->prerequisite.valid()) return absl::OkStatus();
    return received->prerequisite.Wait();
  }

  // Sends worker 0 a control message that claims to be from `source`.
  absl::Status SendControlAs(const rpc::WorkerInfo& source) {
    v1::RRefControlRequest request;
    request.set_first_sequence(1);
    *request.add_operations()->mutable_child_accept()->mutable_fork() =
        ToProto(GlobalId{RunOf(source), 1});
    const rpc::WorkerInfo& to = job_.agent(0).info();
    rpc::TransferCounters counters;
    absl::StatusOr<rpc::Payload> message =
        rpc::EncodeMessage({.body = request.SerializeAsString(),
                            .header = rpc::EncodeRequestHeader(
                                {.job = job_.agent(0).job(),
                                 .source = source.name,
                                 .source_rank = source.id,
                                 .source_incarnation = source.incarnation,
                                 .destination = to.name,
                                 .destination_incarnation = to.incarnation,
                                 .call_id = 0,
                                 .autograd = std::nullopt})},
                           counters);
    if (!message.ok()) return message.status();
    auto connection = outside_transport_->Connect({.address = to.address});
    if (!connection.ok()) return connection.status();
    async::Promise<void> answered;
    async::Future<void> answer = answered.future();
    (*connection)
        ->Call("/hawser.v1.RRefService/Control", *std::move(message),
               async::kNever,
               [answered = std::move(answered)](
                   absl::StatusOr<rpc::Payload> reply) mutable {
                 answered.Set(reply.status());
               });
    return answer.Wait();
  }

  rpc::TestJob job_;
  std::unique_ptr<rpc::Transport> outside_transport_ =
      job_.network().NewTransport();
  uint64_t last_number_ = 1000;
};

TEST_F(UnknownWorkerTest, OwnersInventedByAPeerAreNotRemembered) {
  for (uint64_t i = 0; i < 50; ++i) {
    const rpc::Incarnation made_up{rpc::ToNumber(run(1).incarnation) + 1 + i};
    // With an unused rank, and with the rank of another worker.
    EXPECT_THAT(ReceiveReferenceOf({rpc::WorkerId(7), made_up}),
                StatusIs(absl::StatusCode::kNotFound, HasSubstr("rank 7")));
    EXPECT_THAT(ReceiveReferenceOf({rpc::WorkerId(1), made_up}),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("worker 'w1'")));
    // With an incarnation that belongs to another rank.
    EXPECT_THAT(
        ReceiveReferenceOf(
            {rpc::WorkerId(static_cast<int32_t>(100 + i)), run(1).incarnation}),
        StatusIs(absl::StatusCode::kNotFound, HasSubstr("worker 'w1'")));
  }
}

TEST_F(UnknownWorkerTest, ControlMessagesOfNonMembersAreRefused) {
  rpc::WorkerInfo source = job_.agent(1).info();
  source.incarnation = rpc::Incarnation{rpc::ToNumber(source.incarnation) + 1};
  EXPECT_THAT(SendControlAs(source),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("worker 'w1'")));
  source.name = "nobody";
  EXPECT_THAT(
      SendControlAs(source),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("'nobody'")));
}

}  // namespace
}  // namespace hawser::rref

// Messages that name references and copies of other workers. No worker creates,
// receives or ends them in the name of another, or collides with ids that a
// worker has yet to draw.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/mutex.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/rpc.pb.h"
#include "proto/rref.pb.h"
#include "rpc/functions/function.h"
#include "rpc/identity/worker_info.h"
#include "rpc/identity/worker_run.h"
#include "rpc/testing/agent_test_fixture.h"
#include "rpc/testing/raw_client.h"
#include "rpc/wire/encoder.h"
#include "rref/ids.h"
#include "rref/protocol.h"
#include "rref/rref.h"
#include "rref/rref_service.h"
#include "rref/wire_ids.h"

namespace hawser::rref {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

inline constexpr rpc::Function<int64_t(RRef<int64_t>)> kKeep{
    "hostile_peer_test.Keep"};
inline constexpr rpc::Function<int64_t()> kSeven{"hostile_peer_test.Seven"};

// The test sends messages to worker 0 in the names of the others.
class HostilePeerTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(
        job_.registry().Register(kKeep,
                                 [this](RRef<int64_t> reference) -> int64_t {
                                   async::MutexLock lock(&mutex_);
                                   kept_.push_back(std::move(reference));
                                   return 0;
                                 }),
        IsOk());
    ASSERT_THAT(job_.registry().Register(kSeven, [] { return int64_t{7}; }),
                IsOk());
    job_.StartAll(3, [](int, rpc::AgentOptions& options) {
      options.services.push_back(std::make_unique<RRefService>());
    });
  }
  void TearDown() override {
    {
      async::MutexLock lock(&mutex_);
      kept_.clear();
    }
    job_.StopAll();
  }

  const rpc::WorkerInfo& info(int i) { return job_.agent(i).info(); }
  rpc::WorkerRun run(int i) { return RunOf(info(i)); }
  Protocol& protocol(int i) {
    return *job_.agent(i).service<RRefService>()->protocol();
  }
  GlobalId Id(int i, uint64_t number) { return {run(i), number}; }
  bool HasValue(const GlobalId& rref) {
    const auto value = protocol(0).FindValue(ToProto(rref), info(0));
    // Otherwise it is awaited again.
    return value.ok() && (*value)->future().ready();
  }

  // Calls Keep at worker 0 with a copy `fork` of a reference of worker 1.
  absl::Status ShareAs(int source, const GlobalId& rref, const GlobalId& fork) {
    v1::RRefReference reference;
    *reference.mutable_rref() = ToProto(rref);
    *reference.mutable_fork() = ToProto(fork);
    *reference.mutable_owner() = ToProto(run(1));
    reference.set_owner_name("w1");
    rpc::Encoder encoder;
    encoder.WriteMessage("hawser.v1.RRefReference",
                         reference.SerializeAsString());
    v1::CallRequest request;
    request.set_function(std::string(kKeep.name()));
    request.set_signature(kKeep.Signature());
    EXPECT_TRUE(
        request.mutable_arguments()->ParseFromString(encoder.TakeValues()));
    return caller_
        .Call(info(source), info(0), rpc::RawClient::kCallPath,
              request.SerializeAsString())
        .status();
  }

  absl::Status CreateAs(int source, const GlobalId& rref,
                        const GlobalId& fork) {
    v1::RRefCreateRequest request;
    *request.mutable_rref() = ToProto(rref);
    *request.mutable_fork() = ToProto(fork);
    request.set_function(std::string(kSeven.name()));
    request.set_signature(kSeven.Signature());
    request.set_arguments(rpc::Encoder().TakeValues());
    return caller_
        .Call(info(source), info(0), "/hawser.v1.RRefService/Create",
              request.SerializeAsString())
        .status();
  }

  absl::StatusOr<v1::RRefControlResult> ControlAs(
      int source, const v1::RRefControlOperation& operation) {
    v1::RRefControlRequest request;
    request.set_first_sequence(++last_sequence_);
    *request.add_operations() = operation;
    absl::StatusOr<std::string> reply =
        caller_.Call(info(source), info(0), "/hawser.v1.RRefService/Control",
                     request.SerializeAsString());
    if (!reply.ok()) return reply.status();
    v1::RRefControlReply results;
    EXPECT_TRUE(results.ParseFromString(*reply));
    if (results.results_size() != 1) return absl::UnknownError("no result");
    return results.results(0);
  }

  async::Mutex mutex_;
  std::vector<RRef<int64_t>> kept_ ABSL_GUARDED_BY(mutex_);
  rpc::TestJob job_;
  rpc::RawClient caller_{job_.network().NewTransport()};
  uint64_t last_sequence_ = 0;
};

// Without TLS anyone may claim to be the worker itself.
TEST_F(HostilePeerTest, PlantedCopiesDoNotCollideWithOwnOnes) {
  for (uint64_t n = 1; n <= 64; ++n) {
    EXPECT_THAT(ShareAs(0, Id(1, 1000 + n), Id(0, n)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("did not send")));
  }
  std::vector<RRef<int64_t>> own;
  for (int i = 0; i < 16; ++i) {
    auto reference = Remote(job_.agent(0), "w1", kSeven);
    ASSERT_THAT(reference, IsOk());
    EXPECT_THAT(reference->ToHere(), IsOkAndHolds(7));
    // Each is a copy of its own, which can be given away and received.
    EXPECT_THAT(job_.agent(0).Sync("w2", kKeep, *reference), IsOk());
    own.push_back(*std::move(reference));
  }
  own.clear();
}

TEST_F(HostilePeerTest, CopyOfAnotherWorkersMakingIsRefused) {
  EXPECT_THAT(ShareAs(2, Id(1, 1000), Id(1, 1001)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("an id of another worker")));
  EXPECT_EQ(protocol(0).counts().user.users, 0u);
}

TEST_F(HostilePeerTest, CreationInAnotherWorkersNameIsRefused) {
  const auto refused = StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("an id of another worker"));
  EXPECT_THAT(CreateAs(2, Id(1, 1000), Id(2, 1001)), refused);
  EXPECT_THAT(CreateAs(2, Id(2, 1000), Id(1, 1001)), refused);
  EXPECT_EQ(protocol(0).counts().owner.owners, 0u);
  // Nor does it stop the creator.
  EXPECT_THAT(CreateAs(1, Id(1, 1000), Id(1, 1001)), IsOk());
  EXPECT_TRUE(HasValue(Id(1, 1000)));
}

TEST_F(HostilePeerTest, OthersDoNotWithdrawACreation) {
  ASSERT_THAT(CreateAs(1, Id(1, 1000), Id(1, 1001)), IsOk());
  v1::RRefControlOperation operation;
  v1::UserDelete& end = *operation.mutable_user_delete();
  end.set_creation_unacknowledged(true);
  *end.mutable_rref() = ToProto(Id(1, 1000));
  *end.mutable_fork() = ToProto(Id(1, 1001));
  EXPECT_THAT(ControlAs(2, operation), IsOk());
  EXPECT_TRUE(HasValue(Id(1, 1000)));
  // Also before it arrives.
  *end.mutable_rref() = ToProto(Id(1, 2000));
  *end.mutable_fork() = ToProto(Id(1, 2001));
  EXPECT_THAT(ControlAs(2, operation), IsOk());
  EXPECT_THAT(CreateAs(1, Id(1, 2000), Id(1, 2001)), IsOk());
  EXPECT_TRUE(HasValue(Id(1, 2000)));
}

TEST_F(HostilePeerTest, OthersDoNotEndACopy) {
  ASSERT_THAT(CreateAs(1, Id(1, 1000), Id(1, 1001)), IsOk());
  v1::RRefControlOperation operation;
  *operation.mutable_user_delete()->mutable_rref() = ToProto(Id(1, 1000));
  *operation.mutable_user_delete()->mutable_fork() = ToProto(Id(1, 1001));
  EXPECT_THAT(ControlAs(2, operation), IsOk());
  EXPECT_TRUE(HasValue(Id(1, 1000)));
}

// A worker receives from itself only what it sent.
TEST_F(HostilePeerTest, OwnValueIsNotReleasedInItsOwnersName) {
  auto reference = Remote(job_.agent(0), "w0", kSeven);
  ASSERT_THAT(reference, IsOk());
  EXPECT_THAT(reference->ToHere(), IsOkAndHolds(7));
  const GlobalId rref = reference->id();
  v1::RRefReference share;
  *share.mutable_rref() = ToProto(rref);
  *share.mutable_fork() = ToProto(rref);
  *share.mutable_owner() = ToProto(run(0));
  EXPECT_THAT(protocol(0).Receive(share, info(0)),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_TRUE(HasValue(rref));
}

TEST_F(HostilePeerTest, OthersDoNotWithdrawACopy) {
  v1::RRefControlOperation operation;
  *operation.mutable_withdraw_fork()->mutable_rref() = ToProto(Id(1, 1000));
  *operation.mutable_withdraw_fork()->mutable_fork() = ToProto(Id(1, 1001));
  const auto result = ControlAs(2, operation);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->code(),
            static_cast<int32_t>(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ShareAs(1, Id(1, 1000), Id(1, 1001)), IsOk());
}

}  // namespace
}  // namespace hawser::rref

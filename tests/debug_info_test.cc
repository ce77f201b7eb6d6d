// Tests of Agent::DebugInfo with all services attached.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "autograd/ops/elementwise.h"
#include "autograd/variable.h"
#include "dist_autograd/dist_autograd.h"
#include "dist_autograd/dist_autograd_service.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/functions/function.h"
#include "rpc/identity/call_options.h"
#include "rpc/identity/worker_info.h"
#include "rpc/stream/register_stream.h"
#include "rpc/stream/stream.h"
#include "rpc/stream/stream_function.h"
#include "rpc/stream/stream_service.h"
#include "rpc/testing/agent_test_fixture.h"
#include "rref/rref.h"
#include "rref/rref_service.h"
#include "tensor/tensor.h"

namespace hawser::tests {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;

constexpr rpc::Function<int64_t(int64_t)> kKeep{"debug_info.Keep"};
constexpr rpc::Function<tensor::Tensor(tensor::Tensor)> kSquare{
    "debug_info.Square"};
constexpr rpc::StreamFunction<int64_t()> kForever{"debug_info.Forever"};

class DebugInfoTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_THAT(job_.registry().Register(kKeep, [](int64_t x) { return x; }),
                IsOk());
    ASSERT_THAT(
        job_.registry().Register(
            kSquare, [](tensor::Tensor x) { return autograd::Mul(x, x); }),
        IsOk());
    ASSERT_THAT(rpc::RegisterStream(job_.registry(), kForever,
                                    [](rpc::StreamWriter<int64_t> out) {
                                      absl::Status status;
                                      while (status.ok()) {
                                        status = out.Write(1).Wait();
                                      }
                                      return status;
                                    }),
                IsOk());
    job_.StartAll(2, [](int, rpc::AgentOptions& options) {
      options.liveness.heartbeat_interval = absl::Milliseconds(100);
      // Some tests break connections.
      options.liveness.unreachable_limit = absl::Seconds(20);
      options.services.push_back(std::make_unique<rpc::StreamService>());
      options.services.push_back(std::make_unique<rref::RRefService>());
      options.services.push_back(
          std::make_unique<dist_autograd::DistAutogradService>());
    });
  }

  std::string Number(int rank, const std::string& key) {
    return job_.agent(rank).DebugInfo()[key];
  }
  // Waits for `number`. Resources are released by messages, hence later.
  void Await(int rank, const std::string& key, const std::string& number) {
    while (Number(rank, key) != number) std::this_thread::yield();
  }

  rpc::TestJob job_;
};

TEST_F(DebugInfoTest, ReferencesAreCountedByOwnerAndUser) {
  EXPECT_EQ(Number(0, "rref.users"), "0");
  EXPECT_EQ(Number(1, "rref.owners"), "0");
  {
    auto first = rref::Remote(job_.agent(0), "w1", kKeep, 1);
    auto second = rref::Remote(job_.agent(0), "w1", kKeep, 2);
    ASSERT_THAT(first, IsOk());
    ASSERT_THAT(second, IsOk());
    EXPECT_THAT(first->ToHere(), IsOkAndHolds(1));
    EXPECT_THAT(second->ToHere(), IsOkAndHolds(2));
    EXPECT_EQ(Number(0, "rref.users"), "2");
    EXPECT_EQ(Number(0, "rref.owners"), "0");
    EXPECT_EQ(Number(1, "rref.owners"), "2");
    EXPECT_EQ(Number(1, "rref.forks"), "2");
    EXPECT_EQ(Number(1, "rref.remote_forks"), "2");
    EXPECT_EQ(Number(1, "rref.awaited"), "0");
  }
  Await(0, "rref.users", "0");
  Await(1, "rref.owners", "0");
  Await(1, "rref.forks", "0");
}

// The request for the value arrives before the request that creates it.
TEST_F(DebugInfoTest, ReferencesInTransitAreCounted) {
  job_.network().SetMethodFaults("/hawser.v1.RRefService/Create",
                                 {.drop_request = 1});
  auto reference =
      rref::Remote(job_.agent(0), "w1",
                   rpc::CallOptions{.timeout = rpc::kNoTimeout}, kKeep, 1);
  ASSERT_THAT(reference, IsOk());
  EXPECT_EQ(Number(0, "rref.unconfirmed_users"), "1");
  EXPECT_EQ(Number(1, "rref.awaited"), "0");
  async::Future<int64_t> value = reference->ToHereAsync();
  Await(1, "rref.awaited", "1");
  EXPECT_EQ(Number(1, "rref.owners"), "1");
  EXPECT_EQ(Number(1, "rref.forks"), "0");
  EXPECT_FALSE(value.ready());
  job_.network().SetMethodFaults("/hawser.v1.RRefService/Create", {});
  job_.network().Break(job_.agent(0).info().address,
                       job_.agent(1).info().address);
  Await(0, "rref.unconfirmed_users", "0");
  // The user tells the owner that the value will not be created.
  value.Cancel();
  *reference = rref::RRef<int64_t>();
  Await(1, "rref.awaited", "0");
}

TEST_F(DebugInfoTest, StateOfALostWorkerIsDropped) {
  for (int user = 0; user < 2; ++user) {
    auto reference =
        rref::Remote(job_.agent(user), rpc::WorkerId(1 - user), kKeep, 1);
    ASSERT_THAT(reference, IsOk());
    EXPECT_THAT(reference->ToHere(), IsOkAndHolds(1));
  }
  // Each worker has reported the end of its reference to the other.
  Await(0, "rref.owners", "0");
  Await(1, "rref.owners", "0");
  EXPECT_EQ(Number(1, "rref.control_senders"), "1");
  EXPECT_EQ(Number(1, "rref.control_receivers"), "1");
  EXPECT_EQ(Number(1, "agent.remembered_senders"), "1");
  ASSERT_THAT(job_.agent(0).Shutdown(/*graceful=*/false), IsOk());
  Await(1, "agent.lost_workers", "1");
  Await(1, "rref.control_senders", "0");
  Await(1, "rref.control_receivers", "0");
  Await(1, "agent.remembered_senders", "0");
}

TEST_F(DebugInfoTest, ContextsAreCounted) {
  EXPECT_EQ(Number(0, "dist_autograd.contexts"), "0");
  {
    auto context = dist_autograd::ContextScope::Open(job_.agent(0));
    ASSERT_THAT(context, IsOk());
    EXPECT_EQ(Number(0, "dist_autograd.contexts"), "1");
    EXPECT_EQ(Number(1, "dist_autograd.contexts"), "0");
  }
  Await(0, "dist_autograd.contexts", "0");
}

// The gradient of this pass is lost by the network.
TEST_F(DebugInfoTest, RunningBackwardPassesAreCounted) {
  auto context = dist_autograd::ContextScope::Open(job_.agent(0));
  ASSERT_THAT(context, IsOk());
  const tensor::Tensor leaf = tensor::Tensor::Ones({1});
  ASSERT_THAT(autograd::SetRequiresGrad(leaf), IsOk());
  auto square = job_.agent(0).Sync("w1", kSquare, leaf);
  ASSERT_THAT(square, IsOk());
  EXPECT_EQ(Number(0, "dist_autograd.backward_passes"), "0");
  job_.network().SetMethodFaults("/hawser.v1.DistAutogradService/Gradient",
                                 {.drop_request = 1});
  async::Future<void> pass =
      dist_autograd::BackwardAsync(job_.agent(0), (*context)->id(), {*square});
  Await(0, "dist_autograd.backward_passes", "1");
  EXPECT_EQ(Number(1, "dist_autograd.backward_passes"), "0");
  job_.network().SetMethodFaults("/hawser.v1.DistAutogradService/Gradient", {});
  job_.network().Break(job_.agent(0).info().address,
                       job_.agent(1).info().address);
  EXPECT_THAT(pass.Wait(), IsOk());
  Await(0, "dist_autograd.backward_passes", "0");
  Await(1, "dist_autograd.backward_passes", "0");
}

TEST_F(DebugInfoTest, StreamsAreCountedAtTheWriter) {
  {
    auto reader = rpc::Stream(job_.agent(0), "w1", kForever);
    ASSERT_THAT(reader, IsOk());
    EXPECT_THAT(reader->Next().Wait(), IsOkAndHolds(std::optional<int64_t>(1)));
    EXPECT_EQ(Number(1, "stream.open"), "1");
    EXPECT_EQ(Number(0, "stream.open"), "0");
  }
  Await(1, "stream.open", "0");
}

}  // namespace
}  // namespace hawser::tests

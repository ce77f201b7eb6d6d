// Fetches that meet the end of what they wait for.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "async/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent_test_fixture.h"
#include "rpc/message_hook.h"
#include "rpc/service.h"
#include "rref/rref.h"
#include "rref/rref_service.h"

namespace hawser::rref {
namespace {

using async::IsOk;
using async::StatusIs;

inline constexpr rpc::Function<int64_t(int64_t)> kNever{"fetch_test.Never"};

// Holds each message back until what it was told to wait for is ready.
class HoldingService final : public rpc::Service, public rpc::MessageHook {
 public:
  std::string_view name() const override { return "holding"; }
  absl::Status Start(rpc::Agent&) override { return absl::OkStatus(); }
  rpc::MessageHook* message_hook() override { return this; }

  void HoldUntil(async::Future<void> ready) { ready_ = std::move(ready); }

  absl::StatusOr<std::optional<rpc::AutogradMetadata>> OnSend(
      const rpc::WorkerInfo&, std::span<const tensor::Tensor>) override {
    if (ready_.has_value()) (void)ready_->Wait();
    return std::nullopt;
  }
  absl::StatusOr<async::TaskContext> OnReceiveRequest(
      const rpc::WorkerInfo&, const rpc::AutogradMetadata&,
      std::span<tensor::Tensor>) override {
    return async::TaskContext();
  }
  absl::Status OnReceiveReply(const rpc::WorkerInfo&,
                              const rpc::AutogradMetadata&,
                              std::span<tensor::Tensor>) override {
    return absl::OkStatus();
  }

 private:
  std::optional<async::Future<void>> ready_;
};

TEST(FetchTest, DoesNotWaitForACreationThatFailedWhileItWasSent) {
  rpc::TestJob job;
  HoldingService* holding = nullptr;
  job.StartAll(2, [&](int rank, rpc::AgentOptions& options) {
    options.services.push_back(std::make_unique<RRefService>());
    if (rank != 0) return;
    auto service = std::make_unique<HoldingService>();
    holding = service.get();
    options.services.push_back(std::move(service));
  });
  job.network().SetMethodFaults("/hawser.v1.RRefService/Create",
                                {.drop_request = 1});
  auto rref =
      Remote(job.agent(0), "w1",
             rpc::CallOptions{.timeout = absl::Milliseconds(50)}, kNever, 1);
  ASSERT_THAT(rref, IsOk());
  holding->HoldUntil(rref->WhenConfirmed());
  const absl::Time start = absl::Now();
  EXPECT_THAT(rref->ToHere(absl::Seconds(30)),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       testing::HasSubstr("creation")));
  EXPECT_LT(absl::Now() - start, absl::Seconds(15));
}

}  // namespace
}  // namespace hawser::rref

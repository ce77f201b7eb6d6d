#include "rpc/wire/message_interceptor.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/task_local.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/service.h"
#include "rpc/functions/function.h"
#include "rpc/testing/agent_test_fixture.h"
#include "tensor/tensor.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::testing::ElementsAre;

// Records its calls, and sets a task-local for the callee.
const async::TaskLocal<uint64_t> current_context;

class TestHook final : public MessageInterceptor {
 public:
  absl::StatusOr<std::optional<AutogradMetadata>> OnSend(
      const WorkerInfo&, std::span<const Tensor> tensors) override {
    const uint64_t* context = current_context.get();
    if (context == nullptr) return std::nullopt;
    AutogradMetadata metadata{.context_id = *context,
                              .message_id = ++last_message_,
                              .requires_grad = {}};
    metadata.requires_grad.assign(tensors.size(), false);
    if (!tensors.empty()) metadata.requires_grad.back() = true;
    return metadata;
  }
  absl::StatusOr<async::TaskContext> OnReceiveRequest(
      const WorkerInfo&, const AutogradMetadata& metadata,
      std::span<Tensor> tensors) override {
    EXPECT_EQ(metadata.requires_grad.size(), tensors.size());
    async::TaskLocal<uint64_t>::Scope scope(current_context,
                                            metadata.context_id);
    return async::TaskContext::Capture();
  }
  absl::Status OnReceiveReply(const WorkerInfo& peer,
                              const AutogradMetadata& metadata,
                              std::span<Tensor>) override {
    replies.push_back(peer.name + " " + std::to_string(metadata.context_id) +
                      (metadata.requires_grad.empty()  ? ""
                       : metadata.requires_grad.back() ? " grad"
                                                       : " none"));
    return absl::OkStatus();
  }

  std::vector<std::string> replies;

 private:
  std::atomic<uint64_t> last_message_{0};
};

class HookService final : public Service {
 public:
  std::string_view name() const override { return "hook"; }
  absl::Status Start(ServiceHost&) override { return absl::OkStatus(); }
  MessageInterceptor* message_interceptor() override { return &hook; }
  TestHook hook;
};

TEST(MessageInterceptorTest, ContextPropagatesWithCallsAndReplies) {
  constexpr Function<Tensor(Tensor)> kEcho{"test.Echo"};
  constexpr Function<uint64_t()> kContext{"test.Context"};
  TestJob job;
  ASSERT_THAT(job.registry().Register(kEcho, [](Tensor t) { return t; }),
              IsOk());
  ASSERT_THAT(job.registry().Register(kContext,
                                      [] {
                                        return current_context.get() == nullptr
                                                   ? 0
                                                   : *current_context.get();
                                      }),
              IsOk());
  job.StartAll(2, [](int, AgentOptions& options) {
    options.services.push_back(std::make_unique<HookService>());
  });
  TestHook& hook = job.agent(0).service<HookService>()->hook;
  EXPECT_THAT(job.agent(0).Sync("w1", kContext), IsOkAndHolds(0u));
  {
    async::TaskLocal<uint64_t>::Scope scope(current_context, 17);
    EXPECT_THAT(job.agent(0).Sync("w1", kContext), IsOkAndHolds(17u));
    EXPECT_THAT(job.agent(0).Sync("w1", kEcho, Tensor::Ones({2})), IsOk());
  }
  EXPECT_THAT(hook.replies, ElementsAre("w1 17", "w1 17 grad"));
}

}  // namespace
}  // namespace hawser::rpc

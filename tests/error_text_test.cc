// Tests of errors whose text is long or not UTF-8. They keep their code and
// details on every path to the caller. Names that are not UTF-8 are rejected.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "async/testing/status_matchers.h"
#include "autograd/node.h"
#include "autograd/variable.h"
#include "dist_autograd/dist_autograd.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/wire_text.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/current_call.h"
#include "rpc/errors/error_detail.h"
#include "rpc/functions/function.h"
#include "rpc/functions/function_registry.h"
#include "rpc/stream/register_stream.h"
#include "rpc/stream/stream.h"
#include "rpc/stream/stream_service.h"
#include "rpc/testing/transport_test_param.h"
#include "rref/rref.h"
#include "tensor/tensor.h"
#include "tests/distributed_job.h"

namespace hawser::tests {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kPayloadType[] = "type.googleapis.com/tests.Payload";

inline constexpr rpc::Function<int64_t(int64_t)> kFail{"text.Fail"};
inline constexpr rpc::Function<int64_t(int64_t)> kRelay{"text.Relay"};
inline constexpr rpc::Function<Tensor(Tensor, int64_t)> kFailBackward{
    "text.FailBackward"};
inline constexpr rpc::Function<int64_t()> kHold{"text.Hold"};
inline constexpr rpc::StreamFunction<int64_t(int64_t)> kFailStream{
    "text.FailStream"};

// The paths of an error to the caller, w0.
enum class Path { kCall, kTwoHops, kReference, kStream, kBackward };
constexpr Path kPaths[] = {Path::kCall, Path::kTwoHops, Path::kReference,
                           Path::kStream, Path::kBackward};

std::string_view NameOf(Path path) {
  constexpr std::string_view kNames[] = {"Call", "TwoHops", "Reference",
                                         "Stream", "Backward"};
  return kNames[static_cast<int>(path)];
}

struct Text {
  std::string text;
  // The part that the caller receives.
  std::string part;
};

// The texts; functions take the index of one.
const std::vector<Text>& Texts() {
  static const auto* const texts = [] {
    auto* made = new std::vector<Text>;
    made->push_back({"no file caf\xe9 here", "no file caf\xef\xbf\xbd here"});
    made->push_back({std::string("nul \0 and \x7f\n", 12), "nul "});
    // For each length at which a text may be cut, one of these has a multi-byte
    // character there.
    for (int offset = 0; offset < 4; ++offset) {
      std::string text(offset, 'x');
      for (int i = 0; i < 2000; ++i) text += "\xf0\x9f\x98\x80";
      made->push_back({text, std::string(offset, 'x') + "\xf0\x9f\x98\x80"});
    }
    made->push_back({std::string(5000, '\xff'), "\xef\xbf\xbd\xef\xbf\xbd"});
    return made;
  }();
  return *texts;
}

absl::Status ErrorOf(int64_t number) {
  absl::Status status = absl::DataLossError(Texts()[number].text);
  status.SetPayload(kPayloadType, absl::Cord(std::string(1000, 'p')));
  return status;
}

// The identity function, with a backward pass that fails.
class FailingNode final : public autograd::Node {
 public:
  FailingNode(autograd::Edge edge, int64_t number)
      : Node({std::move(edge)}), number_(number) {}
  std::string_view name() const override { return "FailingNode"; }
  absl::StatusOr<std::vector<Tensor>> Apply(std::vector<Tensor>) override {
    return ErrorOf(number_);
  }

 private:
  const int64_t number_;
};

class ErrorTextTest : public testing::TestWithParam<rpc::TransportParam> {
 protected:
  void SetUp() override {
    rpc::FunctionRegistry& registry = job_.registry();
    ASSERT_THAT(
        registry.Register(kFail,
                          [](int64_t number) -> absl::StatusOr<int64_t> {
                            return ErrorOf(number);
                          }),
        IsOk());
    ASSERT_THAT(
        registry.Register(kRelay,
                          [](int64_t number) {
                            return rpc::CurrentCall::Get()->agent().Async(
                                "w2", kFail, number);
                          }),
        IsOk());
    ASSERT_THAT(registry.Register(
                    kFailBackward,
                    [](Tensor x, int64_t number) -> absl::StatusOr<Tensor> {
                      ASSIGN_OR_RETURN(Tensor y, x.Detach().Clone());
                      autograd::SetHistory(y,
                                           std::make_shared<FailingNode>(
                                               autograd::GradEdge(x), number),
                                           0);
                      return y;
                    }),
                IsOk());
    ASSERT_THAT(registry.Register(kHold,
                                  [this] {
                                    async::Future<int64_t> held =
                                        held_.future();
                                    entered_.Notify();
                                    return held;
                                  }),
                IsOk());
    ASSERT_THAT(
        rpc::RegisterStream(registry, kFailStream,
                            [](rpc::StreamWriter<int64_t>, int64_t number) {
                              return ErrorOf(number);
                            }),
        IsOk());
    job_.StartAll(3, [](int, rpc::AgentOptions& options) {
      AddServices(options);
      options.services.push_back(std::make_unique<rpc::StreamService>());
    });
  }
  void TearDown() override {
    held_.Set(1);
    job_.StopAll();
  }

  rpc::Agent& agent() { return job_.agent(0); }

  absl::Status Fail(Path path, int64_t number) {
    switch (path) {
      case Path::kCall:
        return agent().Sync("w2", kFail, number).status();
      case Path::kTwoHops:
        return agent().Sync("w1", kRelay, number).status();
      case Path::kReference: {
        auto reference = rref::Remote(agent(), "w2", kFail, number);
        if (!reference.ok()) return reference.status();
        return reference->ToHere().status();
      }
      case Path::kStream: {
        auto reader = rpc::Stream(agent(), "w2", kFailStream, number);
        if (!reader.ok()) return reader.status();
        return reader->Next().Wait().status();
      }
      case Path::kBackward:
        return FailBackward(number);
    }
    return absl::OkStatus();
  }

  absl::Status FailBackward(int64_t number) {
    ASSIGN_OR_RETURN(const auto context,
                     dist_autograd::ContextScope::Open(agent()));
    const Tensor leaf = Tensor::Full({1}, 3);
    RETURN_IF_ERROR(autograd::SetRequiresGrad(leaf));
    ASSIGN_OR_RETURN(const Tensor loss,
                     agent().Sync("w2", kFailBackward, leaf, number));
    return dist_autograd::Backward(agent(), context->id(), {loss});
  }

  async::Promise<int64_t> held_;
  absl::Notification entered_;
  rpc::TestJob job_{rpc::MakeTransportFactory(GetParam())};
};

TEST_P(ErrorTextTest, KeepsCodeAndDetailsOnEveryPath) {
  for (const Path path : kPaths) {
    for (size_t number = 0; number < Texts().size(); ++number) {
      SCOPED_TRACE(absl::StrCat(std::string(NameOf(path)), " ", number));
      const absl::Status status = Fail(path, static_cast<int64_t>(number));
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss,
                                   HasSubstr(Texts()[number].part)));
      EXPECT_TRUE(
          net::IsUtf8({status.message().data(), status.message().size()}));
      EXPECT_LT(status.message().size(), net::kMaxErrorTextBytes + 200);
      if (path == Path::kBackward) continue;
      const std::optional<rpc::ErrorDetail> detail =
          rpc::GetErrorDetail(status);
      ASSERT_TRUE(detail.has_value()) << status;
      EXPECT_EQ(detail->worker, "w2");
      EXPECT_EQ(detail->incarnation, job_.agent(2).info().incarnation);
      EXPECT_FALSE(detail->maybe_applied);
      if (path == Path::kStream) continue;
      EXPECT_EQ(status.GetPayload(kPayloadType), std::string(1000, 'p'));
    }
  }
}

TEST_P(ErrorTextTest, DoesNotAffectOtherCalls) {
  const async::Future<int64_t> held = agent().Async("w2", kHold);
  entered_.WaitForNotification();
  for (const Path path : kPaths) {
    EXPECT_THAT(Fail(path, 0), StatusIs(absl::StatusCode::kDataLoss));
  }
  EXPECT_FALSE(held.ready());
  held_.Set(5);
  EXPECT_THAT(held.Wait(), IsOkAndHolds(5));
}

TEST_P(ErrorTextTest, FunctionNamesOutsideUtf8AreRejected) {
  constexpr rpc::Function<int64_t(int64_t)> kLatin{"text.Caf\xe9"};
  constexpr rpc::StreamFunction<int64_t(int64_t)> kLatinStream{"text.Caf\xe9"};
  const auto refused =
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("'text.Caf\\xe9'"), HasSubstr("is not UTF-8")));
  EXPECT_THAT(
      job_.registry().Register(kLatin, [](int64_t number) { return number; }),
      refused);
  EXPECT_THAT(rpc::RegisterStream(job_.registry(), kLatinStream,
                                  [](rpc::StreamWriter<int64_t>, int64_t) {
                                    return absl::OkStatus();
                                  }),
              refused);
  const absl::Status call = agent().Sync("w2", kLatin, 1).status();
  EXPECT_THAT(call, refused);
  const absl::Status creation = rref::Remote(agent(), "w2", kLatin, 1).status();
  EXPECT_THAT(creation, refused);
  for (const absl::Status& status : {call, creation}) {
    const std::optional<rpc::ErrorDetail> detail = rpc::GetErrorDetail(status);
    ASSERT_TRUE(detail.has_value()) << status;
    EXPECT_EQ(detail->incarnation, job_.agent(2).info().incarnation);
    EXPECT_FALSE(detail->maybe_applied);
  }
  EXPECT_THAT(rpc::Stream(agent(), "w2", kLatinStream, 1), refused);
}

TEST_P(ErrorTextTest, WorkerNamesOutsideUtf8AreRejected) {
  const std::string name = "w\xe9";
  const auto refused =
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("'w\\xe9'"), HasSubstr("is not UTF-8")));
  for (const absl::Status& status :
       {agent().Sync(name, kFail, 0).status(),
        rref::Remote(agent(), name, kFail, 0).status(),
        rpc::Stream(agent(), name, kFailStream, 0).status(),
        agent().FindWorker(name).status()}) {
    EXPECT_THAT(status, refused);
    const std::optional<rpc::ErrorDetail> detail = rpc::GetErrorDetail(status);
    ASSERT_TRUE(detail.has_value()) << status;
    EXPECT_FALSE(detail->maybe_applied);
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, ErrorTextTest,
                         testing::ValuesIn(rpc::kTransportParams),
                         rpc::TransportParamName());

}  // namespace
}  // namespace hawser::tests

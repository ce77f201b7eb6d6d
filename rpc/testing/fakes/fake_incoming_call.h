// An IncomingCall for unit tests, without a transport.

#ifndef HAWSER_RPC_TESTING_FAKES_FAKE_INCOMING_CALL_H_
#define HAWSER_RPC_TESTING_FAKES_FAKE_INCOMING_CALL_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/clock.h"
#include "net/auth/identity.h"
#include "rpc/transport/cancellation.h"
#include "rpc/transport/payload.h"
#include "rpc/transport/transport.h"
#include "rpc/wire/message_codec.h"
#include "rpc/wire/message_interceptor.h"
#include "tensor/tensor.h"

namespace hawser::rpc {

// The parts of a request that a test makes up.
struct FakeRequest {
  RequestHeader header = {};
  // Serialised, without header and tensors.
  std::string body = {};
  std::vector<tensor::Tensor> tensors = {};
  // Whether each tensor requires a gradient: empty, or one flag per tensor.
  std::vector<bool> requires_grad = {};
};

// Errors of EncodeMessage.
absl::StatusOr<Payload> Encode(FakeRequest request);

// A call for one thread. Its End outlives it.
class FakeIncomingCall final : public IncomingCall {
 public:
  struct Options {
    async::MonotonicTime deadline = async::kNever;
    absl::StatusOr<std::optional<net::Identity>> caller =
        std::optional<net::Identity>();
    std::shared_ptr<Cancellation> cancellation =
        std::make_shared<Cancellation>();
  };

  // The parts of a reply.
  struct ParsedReply {
    std::string body = {};
    std::vector<tensor::Tensor> tensors = {};
    // Set if the reply is recorded.
    std::optional<AutogradMetadata> autograd = std::nullopt;
  };

  // The end of a call, as its transport sees it.
  struct End {
    enum class Kind { kPending, kReplied, kDiscarded, kDropped };

    Kind kind = Kind::kPending;
    absl::StatusOr<Payload> reply = absl::UnknownError("not replied");

    // The reply, or its error.
    absl::StatusOr<ParsedReply> Parse() const;
  };

  explicit FakeIncomingCall(Payload request)
      : FakeIncomingCall(std::move(request), Options()) {}
  FakeIncomingCall(Payload request, Options options);
  ~FakeIncomingCall() override;

  const std::shared_ptr<const End>& end() const { return end_; }

  Payload TakeRequest() override { return std::move(request_); }
  async::MonotonicTime deadline() const override { return options_.deadline; }
  const std::shared_ptr<Cancellation>& cancellation() const override {
    return options_.cancellation;
  }
  absl::StatusOr<std::optional<net::Identity>> caller() const override {
    return options_.caller;
  }
  void Reply(absl::StatusOr<Payload> reply) override;
  void Discard() override;

 private:
  // A test fails if the call ends twice.
  void SetEnd(End::Kind kind);

  const Options options_;
  Payload request_;
  const std::shared_ptr<End> mutable_end_ = std::make_shared<End>();
  const std::shared_ptr<const End> end_ = mutable_end_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TESTING_FAKES_FAKE_INCOMING_CALL_H_

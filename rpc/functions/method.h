// Methods of protobuf services: how the layers above the agent talk to each
// other.

#ifndef HAWSER_RPC_FUNCTIONS_METHOD_H_
#define HAWSER_RPC_FUNCTIONS_METHOD_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "rpc/identity/worker_info.h"
#include "rpc/transport/cancellation.h"
#include "rpc/wire/wire_traits.h"
#include "tensor/tensor.h"

namespace hawser::rpc {

// A protobuf message and the tensors that travel with it in its fields 14 and
// 15, which are empty in `body`, as is field 13, the header.
template <class M>
struct Message {
  M body;
  std::vector<tensor::Tensor> tensors;
};
// With `body` serialised.
using RawMessage = Message<std::string>;

// What a handler knows of its call; the same as CurrentCall says.
struct MethodCall {
  WorkerInfo peer;
  async::MonotonicTime deadline = async::kNever;
  std::shared_ptr<Cancellation> cancellation;
  // The request as it came, headers and tensors included.
  size_t request_bytes = 0;

  bool cancelled() const { return cancellation->cancelled(); }
};

enum class MethodExecutor {
  // The agent's thread pool.
  kPool,
  // The transport's thread, which spares a wake-up: for handlers of a few
  // microseconds. Requests above 64 KiB go to the pool.
  kInline,
};

struct MethodOptions {
  MethodExecutor executor = MethodExecutor::kPool;
  // Whether calls count for what a peer may have at once. Not so for what must
  // get through when it has too many, and ends where it arrives.
  bool counted = true;
  // Whether observers (net/auth/role.h) may call it: it changes nothing but
  // what they have here, or asks Agent::FindFunction.
  bool for_observers = false;
};

struct MethodCallOptions {
  // As CallOptions::timeout, over all attempts.
  std::optional<absl::Duration> timeout = std::nullopt;
  // How long one attempt of a method that may be retried waits for its answer.
  // Unset: as long as the call.
  std::optional<absl::Duration> attempt_timeout = std::nullopt;
  // Whether the agent's MessageInterceptor sees request and reply.
  bool intercept_messages = false;
  // Ends with the current call, if there is one. Not so for what must reach
  // the peer even if nobody waits any more, such as the end of a reference.
  bool inherit_deadline = true;
  // The calling thread will wait for the reply: it looks for it for a moment
  // before the future is returned, so as not to be woken up. It holds no lock
  // then: callbacks may run.
  bool await = false;
};

// Throwing, or a future that is not valid, gives the caller kInternal.
using RawMethodHandler = std::function<async::Future<RawMessage>(
    const MethodCall& call, RawMessage request)>;

namespace internal {

template <ProtobufMessage M>
absl::StatusOr<Message<M>> ParseMessage(RawMessage raw) {
  Message<M> message{M(), std::move(raw.tensors)};
  if (!message.body.ParseFromArray(raw.body.data(),
                                   static_cast<int>(raw.body.size()))) {
    return UnparsableMessage(message.body.GetTypeName());
  }
  return message;
}

template <ProtobufMessage M>
absl::StatusOr<RawMessage> SerializeMessage(Message<M> message) {
  RawMessage raw{std::string(), std::move(message.tensors)};
  if (!message.body.SerializeToString(&raw.body)) {
    return UnserializableMessage(message.body.GetTypeName());
  }
  return raw;
}

// `handler` takes (const MethodCall&, Message<Request>) and returns
// Future<Message<Reply>>.
template <class Request, class Reply, class Handler>
RawMethodHandler WrapHandler(Handler handler) {
  return
      [handler = std::move(handler)](
          const MethodCall& call, RawMessage raw) -> async::Future<RawMessage> {
        absl::StatusOr<Message<Request>> request =
            ParseMessage<Request>(std::move(raw));
        if (!request.ok()) {
          return async::MakeReadyFuture<RawMessage>(request.status());
        }
        async::Future<Message<Reply>> reply =
            handler(call, std::move(request).value());
        if (!reply.valid()) return async::Future<RawMessage>();
        return std::move(reply).Then([](absl::StatusOr<Message<Reply>> result)
                                         -> absl::StatusOr<RawMessage> {
          if (!result.ok()) return std::move(result).status();
          return SerializeMessage(std::move(result).value());
        });
      };
}

}  // namespace internal
}  // namespace hawser::rpc

#endif  // HAWSER_RPC_FUNCTIONS_METHOD_H_

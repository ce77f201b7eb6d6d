// Methods of protobuf services, by which the layers above the agent
// communicate.

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
#include "google/protobuf/message_lite.h"
#include "rpc/functions/run_on.h"
#include "rpc/identity/worker_info.h"
#include "rpc/transport/cancellation.h"
#include "rpc/transport/transport.h"
#include "rpc/wire/lazy_tensor.h"
#include "rpc/wire/protobuf_message.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::rpc {

// A protobuf message and its tensors. Fields 14 and 15, which hold the tensors
// on the wire, and field 13, the header, are empty in `body`.
template <class M>
struct Message {
  M body;
  std::vector<tensor::Tensor> tensors;
};
// A message with serialised `body`.
using RawMessage = Message<std::string>;

// Context of a call for its handler; the same as CurrentCall.
struct MethodCall {
  WorkerInfo peer;
  async::MonotonicTime deadline = async::kNever;
  std::shared_ptr<Cancellation> cancellation;
  // Size of the request on the wire, including headers and tensors.
  size_t request_bytes = 0;
  // The tensors of the request, if MethodOptions::lazy_tensors is set; empty
  // otherwise. Copies of them, and so the request's bytes, may outlive the
  // handler.
  std::vector<LazyTensor> tensors = {};

  // For NewReplyTensor; null in tests. Valid until the handler returns.
  IncomingCall* incoming = nullptr;

  bool cancelled() const { return cancellation->cancelled(); }

  // Returns a tensor without content for the reply, if possible in memory that
  // the caller reads without another copy: write it once, and do not trust what
  // is in it afterwards, since the caller may change it. Call before the
  // handler returns. kInvalidArgument, kResourceExhausted: as Tensor::TryEmpty.
  absl::StatusOr<tensor::Tensor> NewReplyTensor(const tensor::Shape& shape,
                                                tensor::DType dtype) const;
};

struct MethodOptions {
  // Inline: requests above 64 KiB run on the pool.
  RunOn run_on = RunOn::Pool();
  // Whether calls count towards the peer's quota. False for calls that must get
  // through when the quota is exhausted and that do not cause further calls.
  bool counted = true;
  // Whether observers (net/auth/role.h) may call it: it changes only the
  // caller's own state, or checks permission through ServiceHost::FindFunction.
  bool for_observers = false;
  // Whether a worker that has left the job, but still serves its last calls,
  // may call it.
  bool for_left_workers = false;
  // Whether a worker may call it that says it is a member, before the store has
  // confirmed that. The method must keep nothing of its caller.
  bool for_unconfirmed_senders = false;
  // Whether the handler reads the tensors of a request itself, from
  // MethodCall::tensors, for example in blocks into memory of its own. Its
  // Message then has no tensors. Such a method cannot be recorded for
  // distributed autograd: kInvalidArgument. The bytes of a request count
  // towards the peer's quota until the call ends.
  bool lazy_tensors = false;
};

struct MethodCallOptions {
  // As CallOptions::timeout, for all attempts together.
  std::optional<absl::Duration> timeout = std::nullopt;
  // Timeout of one attempt of a method that may be retried. Unset: that of the
  // call.
  std::optional<absl::Duration> attempt_timeout = std::nullopt;
  // Whether the call of a method that may be repeated goes on if its peer ends:
  // it waits until a worker with the same name joins, and is sent to that one.
  // The method must recognise a request that its predecessor has served.
  bool follow_restarts = false;
  // Whether the agent's MessageInterceptor is called for request and reply.
  bool intercept_messages = false;
  // Whether tensors of the reply may stay in memory that is shared with a peer
  // on the same machine, which saves a copy. A faulty peer can change them at
  // any time: their elements must be harmless whatever they are, as numbers to
  // compute with are, but not indices. While such tensors live, the peer cannot
  // use this memory, 4 MiB for all its replies, and copies more.
  bool in_place_reply = false;
  // Whether the deadline and cancellation of the current inbound call apply, if
  // there is one. False for messages that must reach the peer anyway, such as
  // the deletion of a reference.
  bool inherit_deadline = true;
};

// The caller gets kInternal if the handler throws or returns an invalid future.
using RawMethodHandler = std::function<async::Future<RawMessage>(
    const MethodCall& call, RawMessage request)>;

namespace internal {

// kInternal: `bytes` are not a message of this type.
absl::Status ParseBody(const std::string& bytes,
                       google::protobuf::MessageLite& body);

template <ProtobufMessage M>
absl::StatusOr<Message<M>> ParseMessage(RawMessage raw) {
  Message<M> message;
  absl::Status status = ParseBody(raw.body, message.body);
  if (!status.ok()) return status;
  message.tensors = std::move(raw.tensors);
  return message;
}

absl::StatusOr<RawMessage> SerializeMessage(
    const google::protobuf::MessageLite& body,
    std::vector<tensor::Tensor> tensors);

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
          return SerializeMessage(result->body, std::move(result->tensors));
        });
      };
}

}  // namespace internal
}  // namespace hawser::rpc

#endif  // HAWSER_RPC_FUNCTIONS_METHOD_H_

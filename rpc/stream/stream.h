// Calls whose result is a stream of values.

#ifndef HAWSER_RPC_STREAM_STREAM_H_
#define HAWSER_RPC_STREAM_STREAM_H_

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "rpc/agent/agent.h"
#include "rpc/stream/stream_function.h"
#include "rpc/stream/stream_source.h"
#include "rpc/wire/checked_traits.h"
#include "rpc/wire/decoder.h"
#include "rpc/wire/encoder.h"
#include "rpc/wire/reply_completion.h"

namespace hawser::rpc {

// Reader of one stream's values, in order. Its destruction and Cancel cancel
// the stream. Movable; thread-safe except for moves. The agent must outlive it,
// and a graceful shutdown waits for streams being read.
template <class T>
class StreamReader {
 public:
  explicit StreamReader(std::shared_ptr<StreamSource> source)
      : source_(std::move(source)) {}
  StreamReader(StreamReader&&) noexcept = default;
  StreamReader& operator=(StreamReader&& other) noexcept {
    Cancel();
    source_ = std::move(other.source_);
    return *this;
  }
  ~StreamReader() { Cancel(); }

  // Returns the next value, or nullopt at and after the end. May be called
  // before the previous call has completed. Errors, after all earlier values:
  //   those of a call (rpc/agent/agent.h), applied to the whole stream. the
  //   error returned by the function.
  //   kCancelled  Cancel.
  async::Future<std::optional<T>> Next() {
    async::Promise<std::optional<T>> promise;
    async::Future<std::optional<T>> future = promise.future();
    source_->Next([source = source_, promise = std::move(promise)](
                      absl::StatusOr<std::optional<StreamItem>> item) mutable {
      if (!item.ok()) {
        promise.Set(std::move(item).status());
      } else if (!item->has_value()) {
        promise.Set(std::optional<T>());
      } else {
        Decode(*source, **std::move(item), std::move(promise));
      }
    });
    return future;
  }

  // Cancels the stream; the callee's call is cancelled. Idempotent.
  void Cancel() {
    if (source_ == nullptr) return;
    source_->Close(absl::CancelledError("the stream was cancelled"));
  }

 private:
  static void Decode(StreamSource& source, StreamItem item,
                     async::Promise<std::optional<T>> promise) {
    Decoder decoder(source.agent(), &source.writer(), item.values,
                    std::move(item.tensors));
    async::Promise<T> decoded;
    async::Future<T> value = decoded.future();
    internal::CompleteReply<T>(&decoder, std::move(decoded));
    (void)std::move(value).Then(
        [promise = std::move(promise)](absl::StatusOr<T> result) mutable {
          if (result.ok()) {
            promise.Set(std::optional<T>(std::move(result).value()));
          } else {
            promise.Set(std::move(result).status());
          }
        });
  }

  std::shared_ptr<StreamSource> source_;
};

// Calls `function` on worker `to`, at most once. The function starts at once;
// flow control limits it to `window` values ahead of the reader.
//
// Each value is one message, so larger data must be split into several values.
// Values are not recorded for distributed autograd.
//
//   kInvalidArgument     a window or a timeout out of range.
//   kNotFound            the worker does not exist.
//   kFailedPrecondition  no StreamService is attached to the agent.
//   errors of encoding the arguments.
template <class T, class... A>
absl::StatusOr<StreamReader<T>> Stream(
    Agent& agent, const Destination& to, const StreamOptions& options,
    const StreamFunction<T(A...)>& function,
    const std::type_identity_t<A>&... arguments) {
  ASSIGN_OR_RETURN(
      std::shared_ptr<StreamSource> source,
      StreamSource::Open(agent, to, options, function.name(),
                         function.Signature(), [&](Encoder& encoder) {
                           return internal::Encode<A...>(encoder, arguments...);
                         }));
  return StreamReader<T>(std::move(source));
}
template <class T, class... A>
absl::StatusOr<StreamReader<T>> Stream(
    Agent& agent, const Destination& to,
    const StreamFunction<T(A...)>& function,
    const std::type_identity_t<A>&... arguments) {
  return Stream(agent, to, StreamOptions(), function, arguments...);
}

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_STREAM_STREAM_H_

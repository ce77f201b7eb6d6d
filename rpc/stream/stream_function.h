// Declaration of remote functions that return a stream of values.

#ifndef HAWSER_RPC_STREAM_STREAM_FUNCTION_H_
#define HAWSER_RPC_STREAM_STREAM_FUNCTION_H_

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "async/future.h"
#include "rpc/functions/function.h"
#include "rpc/stream/stream_sink.h"
#include "rpc/wire/checked_traits.h"
#include "rpc/wire/encoder.h"
#include "rpc/wire/wire_traits.h"

namespace hawser::rpc {

template <class Signature>
class StreamFunction;

// Declared like a Function, with the type of one value as its result:
//
//   inline constexpr rpc::StreamFunction<Tensor(std::string)> kPull{"ps.Pull"};
//
// The implementation takes a writer before the parameters. Its return value,
// absl::Status or Future<void>, ends the stream.
//
//   rpc::RegisterStream(registry, kPull,
//                       [](rpc::StreamWriter<Tensor> out,
//                          const std::string& table) -> absl::Status {
//     for (const Tensor& rows : ...) RETURN_IF_ERROR(out.Write(rows).Wait());
//     return absl::OkStatus();
//   });
//
// Callers: rpc/stream/stream.h.
template <class T, class... A>
class StreamFunction<T(A...)> {
  static_assert(WireType<T>, "the values of a stream need rpc::WireTraits");

 public:
  using Value = T;

  // `name` must be a literal, or outlive the declaration.
  constexpr explicit StreamFunction(std::string_view name) : name_(name) {}

  constexpr std::string_view name() const { return name_; }

  // "stream Tensor(string)".
  static const std::string& Signature() {
    static const std::string* const signature =
        new std::string("stream " + Function<T(A...)>::Signature());
    return *signature;
  }

 private:
  std::string_view name_;
};

// Writer of a StreamFunction's implementation. A handle; thread-safe, but
// values are in the order of writing only if one thread writes at a time. May
// outlive the stream; Write then fails.
template <class T>
class StreamWriter {
 public:
  explicit StreamWriter(std::shared_ptr<StreamSink> sink)
      : sink_(std::move(sink)) {}

  // Adds a value, which must fit in one message of the transport. Completes
  // when there is space for another value; wait for it before the next Write.
  // Tensors are not copied and must not be changed before the stream has ended.
  //
  //   kCancelled           the reader cancelled or was lost: return.
  //   kDeadlineExceeded    the stream's deadline has passed: return.
  //   kFailedPrecondition  the last Write has not completed, or the function
  //                        has returned.
  //   errors of encoding the value.
  async::Future<void> Write(const T& value) {
    Encoder encoder(sink_->agent(), &sink_->reader());
    if (absl::Status status = internal::Encode(encoder, value); !status.ok()) {
      return async::MakeReadyFuture<void>(std::move(status));
    }
    std::string values = encoder.TakeValues();
    return sink_->Write({std::move(values), encoder.TakeTensors()});
  }

 private:
  std::shared_ptr<StreamSink> sink_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_STREAM_STREAM_FUNCTION_H_

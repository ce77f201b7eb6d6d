// Registration of functions that write streams.

#ifndef HAWSER_RPC_STREAM_REGISTER_STREAM_H_
#define HAWSER_RPC_STREAM_REGISTER_STREAM_H_

#include <memory>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "async/future.h"
#include "rpc/functions/function_registry.h"
#include "rpc/stream/stream_function.h"
#include "rpc/stream/stream_sink.h"

namespace hawser::rpc {

// Registers `callable` as the implementation of a stream function, as
// FunctionRegistry::Register does for other functions. It takes a
// StreamWriter<T> and the declared parameters, and returns absl::Status or
// Future<void>.
template <class T, class... A, class F>
absl::Status RegisterStream(FunctionRegistry& registry,
                            const StreamFunction<T(A...)>& function, F callable,
                            FunctionOptions options = {}) {
  static_assert(std::is_invocable_v<F&, StreamWriter<T>, A...>,
                "the callable does not take a StreamWriter and the declared "
                "parameters");
  using Returned = std::invoke_result_t<F&, StreamWriter<T>, A...>;
  auto with_writer =
      [callable = std::move(callable)](A... arguments) mutable -> Returned {
    // Set by the stream service. A peer may also send a plain call with the
    // signature of a stream.
    const std::shared_ptr<StreamSink>* const sink =
        internal::current_stream.get();
    if (sink == nullptr) {
      absl::Status error = absl::InvalidArgumentError(
          "the function writes a stream, and was called without one");
      if constexpr (std::is_convertible_v<absl::Status, Returned>) {
        return error;
      } else {
        return async::MakeReadyFuture<void>(std::move(error));
      }
    }
    return callable(StreamWriter<T>(*sink), std::move(arguments)...);
  };
  return registry.Register(
      MakeFunction<void, A...>(function.name(), function.Signature(),
                               std::move(with_writer), std::move(options)));
}

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_STREAM_REGISTER_STREAM_H_

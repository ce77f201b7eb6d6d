// The functions a worker lets others call.

#ifndef HAWSER_RPC_FUNCTION_REGISTRY_H_
#define HAWSER_RPC_FUNCTION_REGISTRY_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "rpc/decoder.h"
#include "rpc/function.h"
#include "rpc/retained_value.h"
#include "rpc/stream_function.h"
#include "rpc/stream_sink.h"

namespace hawser::rpc {

// Where a function runs.
class RunOn {
 public:
  enum class Kind { kPool, kInline, kQueue };

  // On the agent's thread pool, as most functions should.
  static RunOn Pool() { return RunOn(Kind::kPool, ""); }
  // On the transport's thread, before it looks at the next message: for
  // functions of a few microseconds. Blocking there inside a BlockingRegion,
  // such as in a nested Sync, works but costs a thread.
  static RunOn Inline() { return RunOn(Kind::kInline, ""); }
  // On the pool, one after the other with all functions of that queue.
  static RunOn Queue(std::string name) {
    return RunOn(Kind::kQueue, std::move(name));
  }

  Kind kind() const { return kind_; }
  const std::string& queue() const { return queue_; }

 private:
  RunOn(Kind kind, std::string queue) : kind_(kind), queue_(std::move(queue)) {}

  Kind kind_;
  std::string queue_;
};

struct FunctionOptions {
  RunOn run_on = RunOn::Pool();
  // Who may call it: workers with one of these roles. Empty: all but observers
  // (net/role.h). A worker's calls of its own functions are not refused. Others
  // get kPermissionDenied, and nothing of their arguments is read.
  std::vector<std::string> allowed_roles = {};
  // The longest request, arguments and headers, that it is given; others get
  // kResourceExhausted. 0: whatever the transport takes.
  size_t max_request_bytes = 0;
};

// One implementation with its types hidden. Constant.
class RegisteredFunction {
 public:
  using Done = absl::AnyInvocable<void(absl::StatusOr<RetainedValue>) &&>;
  // Runs the function with its arguments, in the calling thread. `Done` runs
  // once: before the return, or, where the function returned a Future, in the
  // thread that completes it.
  using Invocation = absl::AnyInvocable<void(Done) &&>;

  RegisteredFunction(std::string_view name, std::string_view signature,
                     FunctionOptions options)
      : name_(name), signature_(signature), options_(std::move(options)) {}
  virtual ~RegisteredFunction() = default;

  const std::string& name() const { return name_; }
  const std::string& signature() const { return signature_; }
  const FunctionOptions& options() const { return options_; }

  // Reads all values of `arguments`, which must be as many as parameters. The
  // caller waits for the decoder's prerequisites before it uses the result.
  // The function must outlive the invocation.
  virtual absl::StatusOr<Invocation> Prepare(Decoder& arguments) const = 0;

 private:
  const std::string name_;
  const std::string signature_;
  const FunctionOptions options_;
};

// Thread-safe. Functions are never removed: what Find returns lives as long as
// the registry, which must outlive the agents that use it.
class FunctionRegistry {
 public:
  FunctionRegistry() = default;
  FunctionRegistry(const FunctionRegistry&) = delete;
  FunctionRegistry& operator=(const FunctionRegistry&) = delete;

  // `callable` takes what the declaration says and returns `R`, StatusOr<R>
  // (for void: Status), or Future<R>, which frees the thread until the future
  // completes. It may run in several threads at once. Arguments that it takes
  // by value or rvalue are moved in.
  //
  // Callers get kInternal, naming the function, if it throws or returns a
  // Future that is not valid; kCancelled if the Future's promise is dropped.
  //
  // kAlreadyExists if the name is taken; kInvalidArgument for an allowed role
  // that is none.
  template <class R, class... A, class F>
  absl::Status Register(const Function<R(A...)>& function, F callable,
                        FunctionOptions options = {});

  // Same, for a function that writes a stream: `callable` takes a
  // StreamWriter<T> and what the declaration says, and returns absl::Status or
  // Future<void>.
  template <class T, class... A, class F>
  absl::Status Register(const StreamFunction<T(A...)>& function, F callable,
                        FunctionOptions options = {});

  // kUnimplemented names the function; kInvalidArgument both signatures.
  absl::StatusOr<const RegisteredFunction*> Find(
      std::string_view name, std::string_view signature) const;
  // All, by name.
  std::vector<const RegisteredFunction*> All() const;

 private:
  absl::Status Add(std::unique_ptr<const RegisteredFunction> function);

  mutable async::Mutex mutex_;
  absl::flat_hash_map<std::string, std::unique_ptr<const RegisteredFunction>>
      functions_ ABSL_GUARDED_BY(mutex_);
};

namespace internal {

absl::Status LeftoverArguments(std::string_view function);
absl::Status InvalidFuture(std::string_view function);
// Runs `call`; what it throws becomes kInternal. Hawser throws nothing, but
// what users call may.
absl::Status CatchThrown(std::string_view function,
                         absl::FunctionRef<void()> call);

// Gives what a callable returned, of whatever allowed type, to `done`.
template <class R, class Returned>
void Finish(std::string_view function, Returned returned,
            RegisteredFunction::Done done) {
  if constexpr (std::is_same_v<Returned, async::Future<R>>) {
    if (!returned.valid()) {
      std::move(done)(InvalidFuture(function));
      return;
    }
    (void)std::move(returned).Then([function, done = std::move(done)](
                                       async::Result<R> result) mutable {
      Finish<R, async::Result<R>>(function, std::move(result), std::move(done));
    });
  } else if constexpr (std::is_void_v<R>) {
    static_assert(std::is_same_v<Returned, absl::Status>);
    if (returned.ok()) {
      std::move(done)(RetainedValue{nullptr, ValueTypeOf<void>()});
    } else {
      std::move(done)(std::move(returned));
    }
  } else if constexpr (std::is_same_v<Returned, absl::StatusOr<R>>) {
    if (returned.ok()) {
      std::move(done)(Retain<R>(std::move(returned).value()));
    } else {
      std::move(done)(std::move(returned).status());
    }
  } else {
    static_assert(std::is_convertible_v<Returned, R>,
                  "the callable returns another type than the declaration");
    std::move(done)(Retain<R>(std::move(returned)));
  }
}

template <class F, class R, class... A>
class TypedFunction final : public RegisteredFunction {
 public:
  TypedFunction(std::string_view name, std::string_view signature, F callable,
                FunctionOptions options)
      : RegisteredFunction(name, signature, std::move(options)),
        callable_(std::move(callable)) {}

  absl::StatusOr<Invocation> Prepare(Decoder& decoder) const override {
    ASSIGN_OR_RETURN(
        std::tuple<A...> arguments,
        (TupleTraits<std::tuple<A...>, A...>::template DecodeSequence<A...>(
            decoder)));
    if (!decoder.AtEnd()) return LeftoverArguments(name());
    return Invocation(
        [this, arguments = std::move(arguments)](Done done) mutable {
          Run(std::move(arguments), std::move(done));
        });
  }

 private:
  void Run(std::tuple<A...> arguments, Done done) const {
    using Result = std::invoke_result_t<F&, A...>;
    using Returned = std::conditional_t<std::is_void_v<Result>, absl::Status,
                                        std::decay_t<Result>>;
    std::optional<Returned> returned;
    absl::Status thrown = CatchThrown(name(), [&] {
      if constexpr (std::is_void_v<Result>) {
        std::apply(callable_, std::move(arguments));
        returned.emplace(absl::OkStatus());
      } else {
        returned.emplace(std::apply(callable_, std::move(arguments)));
      }
    });
    if (thrown.ok()) {
      Finish<R, Returned>(name(), *std::move(returned), std::move(done));
    } else {
      std::move(done)(std::move(thrown));
    }
  }

  // Called from several threads; its own business if it has state.
  mutable F callable_;
};

}  // namespace internal

template <class R, class... A, class F>
absl::Status FunctionRegistry::Register(const Function<R(A...)>& function,
                                        F callable, FunctionOptions options) {
  static_assert(std::is_invocable_v<F&, A...>,
                "the callable does not take the declared parameters");
  return Add(std::make_unique<internal::TypedFunction<F, R, A...>>(
      function.name(), function.Signature(), std::move(callable),
      std::move(options)));
}

template <class T, class... A, class F>
absl::Status FunctionRegistry::Register(const StreamFunction<T(A...)>& function,
                                        F callable, FunctionOptions options) {
  static_assert(std::is_invocable_v<F&, StreamWriter<T>, A...>,
                "the callable does not take a StreamWriter and the declared "
                "parameters");
  // The stream it runs for is around it; a call that is none has another
  // signature.
  auto with_writer = [callable = std::move(callable)](A... arguments) mutable {
    return callable(StreamWriter<T>(*internal::current_stream.get()),
                    std::move(arguments)...);
  };
  return Add(std::make_unique<
             internal::TypedFunction<decltype(with_writer), void, A...>>(
      function.name(), function.Signature(), std::move(with_writer),
      std::move(options)));
}

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_FUNCTION_REGISTRY_H_

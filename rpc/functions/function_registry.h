// Registry of the functions that a worker's peers can call.

#ifndef HAWSER_RPC_FUNCTIONS_FUNCTION_REGISTRY_H_
#define HAWSER_RPC_FUNCTIONS_FUNCTION_REGISTRY_H_

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
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/exceptions.h"
#include "async/future.h"
#include "async/mutex.h"
#include "async/run_time.h"
#include "async/status_macros.h"
#include "rpc/functions/erased_value.h"
#include "rpc/functions/function.h"
#include "rpc/functions/run_on.h"
#include "rpc/wire/decoder.h"

namespace hawser::rpc {

struct FunctionOptions {
  RunOn run_on = RunOn::Pool();
  // Roles that may call the function; empty allows all but observers
  // (net/auth/role.h). A worker may always call its own functions. Other
  // callers get kPermissionDenied, and their arguments are not read.
  std::vector<std::string> allowed_roles = {};
  // Maximum size of a request in bytes, including headers; larger ones get
  // kResourceExhausted. 0 for the transport's limit.
  size_t max_request_bytes = 0;
};

// A type-erased implementation. Immutable but for its run time.
class RegisteredFunction {
 public:
  using Done = absl::AnyInvocable<void(absl::StatusOr<ErasedValue>) &&>;
  // Runs the function with its arguments in the calling thread. `Done` runs
  // once: before Invocation returns or, if the function returned a Future, in
  // the thread that completes it.
  using Invocation = absl::AnyInvocable<void(Done) &&>;

  RegisteredFunction(std::string_view name, std::string_view signature,
                     FunctionOptions options)
      : name_(name), signature_(signature), options_(std::move(options)) {}
  virtual ~RegisteredFunction() = default;

  const std::string& name() const { return name_; }
  const std::string& signature() const { return signature_; }
  const FunctionOptions& options() const { return options_; }
  // Of calls of the function, with reading the arguments and sending the reply.
  async::RunTime& run_time() const { return run_time_; }

  // Reads all values of `arguments`, whose number must equal that of the
  // parameters. The caller must wait for the decoder's prerequisites before it
  // runs the invocation. The function must outlive the invocation.
  virtual absl::StatusOr<Invocation> Prepare(Decoder& arguments) const = 0;

 private:
  const std::string name_;
  const std::string signature_;
  const FunctionOptions options_;
  mutable async::RunTime run_time_;
};

// Thread-safe. Functions are never removed: pointers returned by Find live as
// long as the registry, which must outlive the agents that use it.
class FunctionRegistry {
 public:
  FunctionRegistry() = default;
  FunctionRegistry(const FunctionRegistry&) = delete;
  FunctionRegistry& operator=(const FunctionRegistry&) = delete;

  // `callable` takes the declared parameters and returns `R`, StatusOr<R>
  // (Status for void), or Future<R>, which does not block the thread. It may
  // run in several threads concurrently. Arguments taken by value or rvalue
  // reference are moved.
  //
  // Callers get kInternal if it throws, including later in a coroutine or a
  // callback of its Future, or if it returns an invalid Future; kCancelled if
  // the Future's promise is dropped.
  //
  // kAlreadyExists if the name is taken; kInvalidArgument if the name or the
  // signature is not UTF-8, or if an allowed role is not a valid role name.
  template <class R, class... A, class F>
  absl::Status Register(const Function<R(A...)>& function, F callable,
                        FunctionOptions options = {});

  // Same, for an implementation made by MakeFunction.
  absl::Status Register(std::unique_ptr<const RegisteredFunction> function);

  // kUnimplemented, naming the function, if it is not registered;
  // kInvalidArgument, with both signatures, or with the fields that differ, if
  // they are not equal.
  absl::StatusOr<const RegisteredFunction*> Find(
      std::string_view name, std::string_view signature) const;
  // Returns all functions, ordered by name.
  std::vector<const RegisteredFunction*> All() const;

 private:
  mutable async::Mutex mutex_;
  absl::flat_hash_map<std::string, std::unique_ptr<const RegisteredFunction>>
      functions_ ABSL_GUARDED_BY(mutex_);
};

namespace internal {

absl::Status LeftoverArguments(std::string_view function);
absl::Status InvalidFuture(std::string_view function);
// Erases the return value of a callable, of any allowed type but Future.
template <class R, class Returned>
absl::StatusOr<ErasedValue> EraseResult(Returned returned) {
  if constexpr (std::is_void_v<R>) {
    static_assert(std::is_same_v<Returned, absl::Status>);
    RETURN_IF_ERROR(returned);
    return ErasedValue{nullptr, ValueTypeOf<void>()};
  } else if constexpr (std::is_same_v<Returned, absl::StatusOr<R>>) {
    RETURN_IF_ERROR(returned);
    return Erase<R>(std::move(returned).value());
  } else {
    static_assert(std::is_convertible_v<Returned, R>,
                  "the callable returns another type than the declaration");
    return Erase<R>(std::move(returned));
  }
}

template <class F, class R, class... A>
class TypedFunction final : public RegisteredFunction {
 public:
  TypedFunction(std::string_view name, std::string_view signature, F callable,
                FunctionOptions options)
      : RegisteredFunction(name, signature, std::move(options)),
        who_("function '" + std::string(name) + "'"),
        callable_(std::move(callable)) {}

  absl::StatusOr<Invocation> Prepare(Decoder& decoder) const override {
    return async::CatchExceptions<absl::StatusOr<Invocation>>(
        "the decoding of a value", [&] { return PrepareOrThrow(decoder); });
  }

 private:
  absl::StatusOr<Invocation> PrepareOrThrow(Decoder& decoder) const {
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

  void Run(std::tuple<A...> arguments, Done done) const {
    using Result = std::decay_t<std::invoke_result_t<F&, A...>>;
    if constexpr (std::is_same_v<Result, async::Future<R>>) {
      absl::StatusOr<async::Future<R>> returned =
          async::CatchExceptions<absl::StatusOr<async::Future<R>>>(who_, [&] {
            return std::apply(callable_, std::move(arguments));
          });
      if (!returned.ok()) {
        std::move(done)(std::move(returned).status());
      } else if (!returned->valid()) {
        std::move(done)(InvalidFuture(name()));
      } else {
        (void)(*std::move(returned))
            // May run after the registry, and thus this object, is destroyed.
            .Then([done = std::move(done)](async::Result<R> result) mutable {
              std::move(done)(Erased("a function", [&]() -> async::Result<R> {
                return std::move(result);
              }));
            });
      }
    } else {
      std::move(done)(Erased(who_, [&]() -> std::invoke_result_t<F&, A...> {
        return std::apply(callable_, std::move(arguments));
      }));
    }
  }

  // Returns the result of `call`.
  template <class Call>
  static absl::StatusOr<ErasedValue> Erased(std::string_view who, Call call) {
    return async::CatchExceptions<absl::StatusOr<ErasedValue>>(
        who, [&]() -> absl::StatusOr<ErasedValue> {
          using Result = std::invoke_result_t<Call>;
          if constexpr (std::is_void_v<Result>) {
            call();
            return EraseResult<R>(absl::OkStatus());
          } else {
            return EraseResult<R, std::decay_t<Result>>(call());
          }
        });
  }

  // Name of the function in errors.
  const std::string who_;
  // Called from several threads; must synchronize its own state.
  mutable F callable_;
};

}  // namespace internal

// Creates the implementation of a function of `name` and `signature` by
// `callable`, which takes A... and returns a type allowed by
// FunctionRegistry::Register.
template <class R, class... A, class F>
std::unique_ptr<const RegisteredFunction> MakeFunction(
    std::string_view name, std::string_view signature, F callable,
    FunctionOptions options = {}) {
  return std::make_unique<internal::TypedFunction<F, R, A...>>(
      name, signature, std::move(callable), std::move(options));
}

template <class R, class... A, class F>
absl::Status FunctionRegistry::Register(const Function<R(A...)>& function,
                                        F callable, FunctionOptions options) {
  static_assert(std::is_invocable_v<F&, A...>,
                "the callable does not take the declared parameters");
  return Register(MakeFunction<R, A...>(function.name(), function.Signature(),
                                        std::move(callable),
                                        std::move(options)));
}

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_FUNCTIONS_FUNCTION_REGISTRY_H_

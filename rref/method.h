#ifndef HAWSER_RREF_METHOD_H_
#define HAWSER_RREF_METHOD_H_

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "rpc/agent/agent.h"
#include "rpc/functions/function.h"
#include "rpc/functions/function_registry.h"
#include "rpc/wire/reply_completion.h"
#include "rpc/wire/wire_traits.h"
#include "rref/access/async_shared_mutex.h"
#include "rref/method_scope.h"
#include "rref/method_target.h"
#include "rref/rref.h"

namespace hawser::rref {

template <class Signature>
class Method;

// A method of the objects behind references. It is declared once, is typed and
// has a name, like an rpc::Function:
//
//   inline constexpr rref::Method<int64_t(Counter&, int64_t)> kAdd{
//       "Counter.Add"};
//
// The owner's binary registers it; a binary that only calls it needs only the
// declaration. It runs at the owner, on the object itself, once the object has
// been created:
//
//   rref::RegisterMethod(registry, kAdd, &Counter::Add);
//   absl::StatusOr<int64_t> sum = rref::Sync(agent, counter, kAdd, 5);
//
// A method has access to its object, so that neither the class nor its users
// need a mutex: it runs between two optimizer steps, never during one, and
// apart from other methods and fetches of the same reference. Methods that take
// the object as const share the access with each other and with fetches
// (docs/rref.md, G9; HoldAccess below).
//
// A method must not wait for anything that needs access to its own object. In
// the method's thread, Sync on the object, its ToHere and its Lock are
// kFailedPrecondition. Elsewhere, such as through another worker, such a wait
// ends at the deadline of the call.
//
// The access does not cover a reply: a result that shares memory with the
// object, such as its own tensor, is sent after the access has ended. Return a
// copy (autograd::Clone), or fetch the object by ToHere.
template <class R, class T, class... A>
class Method<R(T&, A...)> {
 public:
  // `name` must be a literal or outlive the declaration.
  constexpr explicit Method(std::string_view name) : function_(name) {}

  constexpr std::string_view name() const { return function_.name(); }
  // The function that is called: "int64(Counter&, int64)".
  constexpr const rpc::Function<R(MethodTarget<T>, A...)>& function() const {
    return function_;
  }

 private:
  rpc::Function<R(MethodTarget<T>, A...)> function_;
};

// Time for which a method has access to its object.
enum class HoldAccess {
  // From its start until its result is ready: for a method that returns a
  // Future, such as a coroutine, until that is complete.
  kUntilResult,
  // From its start until it returns. For a method whose Future is completed by
  // another method of the same object, which could not run before with
  // kUntilResult. What runs after it has returned has no access.
  kUntilReturn,
  // Never. For an object that synchronizes itself; the method may run at any
  // time, in several threads concurrently.
  kNever,
};

namespace internal {

// Whether `F` takes the object as a const T& or a copy. An overloaded call
// operator, such as that of a lambda with `auto&`, does not show it.
template <class F, class T, class... A>
constexpr bool TakesConst() {
  if constexpr (std::is_class_v<F> && !requires { &F::operator(); }) {
    return false;
  } else {
    return std::is_invocable_v<F&, const T&, A...>;
  }
}

template <HoldAccess kHold, class F, class T, class... A>
constexpr MethodAccess AccessOf() {
  if (kHold == HoldAccess::kNever) return MethodAccess::kNone;
  return TakesConst<F, T, A...>() ? MethodAccess::kShared
                                  : MethodAccess::kExclusive;
}

}  // namespace internal

// Registers `callable`: a pointer to a member function of T, or an object
// called with a T& and the declared parameters. It may return the same types as
// a registered function. If it returns a Future, the object is kept alive until
// the future completes. Errors: FunctionRegistry::Register.
//
//   rref::RegisterMethod<HoldAccess::kNever>(registry, kAdd, &Counter::Add);
//
// The access is exclusive, or shared if the callable is a const member function
// or takes a const T&. It waits for access, in the order of arrival, before it
// occupies a thread. A call that was given up while it waited does not run.
// With a queue (rpc::RunOn::Queue), do not wait for access in functions of the
// same queue: a method that has it may be behind them.
template <HoldAccess kHold = HoldAccess::kUntilResult, class R, class T,
          class... A, class F>
absl::Status RegisterMethod(rpc::FunctionRegistry& registry,
                            const Method<R(T&, A...)>& method, F callable,
                            rpc::FunctionOptions options = {}) {
  static_assert(std::is_invocable_v<F&, T&, A...>,
                "the callable must take the object and the declared "
                "parameters");
  using Returned = std::decay_t<std::invoke_result_t<F&, T&, A...>>;
  constexpr MethodAccess kAccess = internal::AccessOf<kHold, F, T, A...>();
  using Target = MethodTarget<T, kAccess>;
  return registry.Register(
      rpc::Function<R(Target, A...)>(method.name()),
      [callable = std::move(callable)](
          const Target& target, A... arguments) mutable -> async::Future<R> {
        const std::shared_ptr<T> object = target.Object();
        AsyncSharedMutex::Holder access = target.TakeAccess();
        std::optional<MethodScope> scope;
        if (kAccess != MethodAccess::kNone) scope.emplace(target.value());
        if constexpr (std::is_same_v<Returned, async::Future<R>>) {
          async::Future<R> future =
              std::invoke(callable, *object, std::move(arguments)...);
          // The registry refuses it, as for any function.
          if (!future.valid()) return future;
          if (kHold != HoldAccess::kUntilResult) access.reset();
          return std::move(future).Then([object, access = std::move(access)](
                                            async::Result<R> result) mutable {
            // Before the caller gets the result.
            access.reset();
            return result;
          });
        } else if constexpr (std::is_void_v<Returned>) {
          std::invoke(callable, *object, std::move(arguments)...);
          return async::MakeReadyFuture<void>(absl::OkStatus());
        } else {
          return async::MakeReadyFuture<R>(
              std::invoke(callable, *object, std::move(arguments)...));
        }
      },
      std::move(options));
}

// Calls `method` on the object that `rref` refers to, at its owner, at most
// once. Errors besides those of a call:
//   the error of the function that was to create the object.
//   the error of the creation.
//   kInvalidArgument  the object is not a `T`.
template <class R, class T, class... A>
async::Future<R> Async(rpc::Agent& agent, const RRef<T>& rref,
                       const rpc::CallOptions& options,
                       const Method<R(T&, A...)>& method,
                       const std::type_identity_t<A>&... arguments) {
  const async::Future<void> confirmed = rref.WhenConfirmed();
  async::Future<R> reply =
      agent.Async(rref.owner(), options, method.function(),
                  MethodTarget<T>(rref.reference()), arguments...);
  if (!confirmed.ready() || !confirmed.result().ok()) {
    // If the creation fails or has failed, the object will never exist.
    confirmed.OnReady([reply](const absl::Status& status) {
      if (!status.ok()) reply.Cancel();
    });
  }
  return reply.Then([confirmed](async::Result<R> result) -> async::Result<R> {
    if (absl::IsCancelled(rpc::internal::StatusOf(result)) &&
        confirmed.ready() && !confirmed.result().ok()) {
      return confirmed.result();
    }
    return result;
  });
}
template <class R, class T, class... A>
async::Future<R> Async(rpc::Agent& agent, const RRef<T>& rref,
                       const Method<R(T&, A...)>& method,
                       const std::type_identity_t<A>&... arguments) {
  return Async(agent, rref, rpc::CallOptions(), method, arguments...);
}

// Like Async, but waits. Also, kFailedPrecondition in a method that has access
// to the same object.
template <class R, class T, class... A>
async::Result<R> Sync(rpc::Agent& agent, const RRef<T>& rref,
                      const rpc::CallOptions& options,
                      const Method<R(T&, A...)>& method,
                      const std::type_identity_t<A>&... arguments) {
  RETURN_IF_ERROR(rref.reference()->CheckMayWait());
  return Async(agent, rref, options, method, arguments...).Wait();
}
template <class R, class T, class... A>
async::Result<R> Sync(rpc::Agent& agent, const RRef<T>& rref,
                      const Method<R(T&, A...)>& method,
                      const std::type_identity_t<A>&... arguments) {
  return Sync(agent, rref, rpc::CallOptions(), method, arguments...);
}

// Calls the method, keeps the result at the owner and returns a reference to
// it.
template <class R, class T, class... A>
absl::StatusOr<RRef<R>> Remote(rpc::Agent& agent, const RRef<T>& rref,
                               const rpc::CallOptions& options,
                               const Method<R(T&, A...)>& method,
                               const std::type_identity_t<A>&... arguments) {
  return Remote(agent, rref.owner(), options, method.function(),
                MethodTarget<T>(rref.reference()), arguments...);
}
template <class R, class T, class... A>
absl::StatusOr<RRef<R>> Remote(rpc::Agent& agent, const RRef<T>& rref,
                               const Method<R(T&, A...)>& method,
                               const std::type_identity_t<A>&... arguments) {
  return Remote(agent, rref, rpc::CallOptions(), method, arguments...);
}

}  // namespace hawser::rref

#endif  // HAWSER_RREF_METHOD_H_

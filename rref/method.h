#ifndef HAWSER_RREF_METHOD_H_
#define HAWSER_RREF_METHOD_H_

#include <functional>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "rpc/agent/agent.h"
#include "rpc/functions/function.h"
#include "rpc/functions/function_registry.h"
#include "rpc/wire/reply_completion.h"
#include "rpc/wire/wire_traits.h"
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
// Methods must synchronize access to the object: they may run in several
// threads concurrently, unless they are registered to run on one queue
// (rpc::RunOn::Queue).
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

// Registers `callable`: a pointer to a member function of T, or an object
// called with a T& and the declared parameters. It may return the same types as
// a registered function. If it returns a Future, the object is kept alive until
// the future completes. Errors: FunctionRegistry::Register.
template <class R, class T, class... A, class F>
absl::Status RegisterMethod(rpc::FunctionRegistry& registry,
                            const Method<R(T&, A...)>& method, F callable,
                            rpc::FunctionOptions options = {}) {
  static_assert(std::is_invocable_v<F&, T&, A...>,
                "the callable must take the object and the declared "
                "parameters");
  using Returned = std::decay_t<std::invoke_result_t<F&, T&, A...>>;
  return registry.Register(
      method.function(),
      [callable = std::move(callable)](
          const MethodTarget<T>& target,
          A... arguments) mutable -> async::Future<R> {
        const std::shared_ptr<T> object = target.Object();
        if constexpr (std::is_same_v<Returned, async::Future<R>>) {
          async::Future<R> future =
              std::invoke(callable, *object, std::move(arguments)...);
          // The registry refuses it, as for any function.
          if (!future.valid()) return future;
          return std::move(future).Then(
              [object](async::Result<R> result) { return result; });
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

// Like Async, but waits.
template <class R, class T, class... A>
async::Result<R> Sync(rpc::Agent& agent, const RRef<T>& rref,
                      const rpc::CallOptions& options,
                      const Method<R(T&, A...)>& method,
                      const std::type_identity_t<A>&... arguments) {
  return Async(agent, rref, options, method, arguments...).Wait();
}
template <class R, class T, class... A>
async::Result<R> Sync(rpc::Agent& agent, const RRef<T>& rref,
                      const Method<R(T&, A...)>& method,
                      const std::type_identity_t<A>&... arguments) {
  return Async(agent, rref, rpc::CallOptions(), method, arguments...).Wait();
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

#ifndef HAWSER_DIST_AUTOGRAD_DIST_AUTOGRAD_H_
#define HAWSER_DIST_AUTOGRAD_DIST_AUTOGRAD_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "dist_autograd/engine.h"
#include "dist_autograd/gradients.h"
#include "dist_autograd/ids.h"
#include "rpc/agent/agent.h"
#include "rref/rref.h"
#include "tensor/tensor.h"

namespace hawser::dist_autograd {

// A scope that records the calls and fetches of tensors that require gradients,
// so that Backward can return gradients along the same path:
//
//   ASSIGN_OR_RETURN(auto context, ContextScope::Open(agent));
//   ASSIGN_OR_RETURN(Tensor w, weight.ToHere());
//   ASSIGN_OR_RETURN(Tensor loss, Loss(w, batch));
//   RETURN_IF_ERROR(Backward(agent, context->id(), {loss}));
//   RETURN_IF_ERROR(optimizer.Step(context->id()));
//
// Applies to the task in which it was opened, also on other threads and
// workers. Must be destroyed in the thread that opened it, in reverse order of
// opening. The destructor ends the context, its graphs and its gradients on all
// workers. Several contexts may be open at the same time in different threads.
class ContextScope {
 public:
  // kFailedPrecondition: a context is open here already, the agent was shut
  // down, or a DistAutogradService is not attached to it.
  static absl::StatusOr<std::unique_ptr<ContextScope>> Open(rpc::Agent& agent);

  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

  ContextId id() const { return context_->id(); }

 private:
  ContextScope(std::shared_ptr<Engine> engine,
               std::shared_ptr<Context> context);

  const std::shared_ptr<Engine> engine_;
  const std::shared_ptr<Context> context_;
  const Engine::CurrentContext current_;
};

// Computes the gradients of the sum of `roots` with respect to all leaves from
// which they were computed, on any worker. Adds them to the context, each on
// the worker of its leaf. Grad(leaf) does not change.
//
// The local part runs in the calling thread. Passes of different contexts run
// concurrently.
//
//   kNotFound            the context is unknown on this worker or has ended.
//   kInvalidArgument     `roots` is empty; a root does not require a gradient,
//                        has more than one element, or is a leaf; or the
//                        timeout is negative.
//   kFailedPrecondition  another pass of the context is running; or a part of
//                        the graph was run before without retain_graph, or was
//                        changed in place, naming workers and operation.
//   kDeadlineExceeded    not done within the timeout, naming the forward
//                        messages whose gradients are missing.
//   kUnavailable         a worker that takes part is lost or has left, naming
//                        it.
//   kAborted             the context was ended meanwhile.
//   Errors of operations, prefixed with the workers that passed them on.
// After an error some gradients may have been added; another pass of the same
// context may follow.
absl::Status Backward(rpc::Agent& agent, ContextId context,
                      const std::vector<Tensor>& roots,
                      const BackwardOptions& options = {});
async::Future<void> BackwardAsync(rpc::Agent& agent, ContextId context,
                                  const std::vector<Tensor>& roots,
                                  const BackwardOptions& options = {});

// The same for a root of one element at the owner of `root`, which becomes the
// root worker.
absl::Status Backward(rpc::Agent& agent, ContextId context,
                      const rref::RRef<Tensor>& root,
                      const BackwardOptions& options = {});

// Returns the gradients of this worker's leaves.
//
// kNotFound: the context is unknown on this worker or has ended.
absl::StatusOr<Gradients> GetGradients(rpc::Agent& agent, ContextId context);

}  // namespace hawser::dist_autograd

#endif  // HAWSER_DIST_AUTOGRAD_DIST_AUTOGRAD_H_

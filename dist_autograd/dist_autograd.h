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

// Records what calls and fetches do with tensors that require gradients, from
// its making to its end, so that Backward can go the same way back:
//
//   ASSIGN_OR_RETURN(auto context, ContextScope::Open(agent));
//   ASSIGN_OR_RETURN(Tensor w, weight.ToHere());
//   ASSIGN_OR_RETURN(Tensor loss, Loss(w, batch));
//   RETURN_IF_ERROR(Backward(agent, context->id(), {loss}));
//   RETURN_IF_ERROR(optimizer.Step(context->id()));
//
// Belongs to the work it was opened in and follows it onto other threads and
// workers; must be ended in the thread that opened it, the last opened first.
// Its end ends the context, its graphs and its gradients on all workers.
// Several contexts may be open at the same time in different threads.
class ContextScope {
 public:
  // kFailedPrecondition: a context is open here already; the agent was shut
  // down; or no DistAutogradService is attached to it.
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

// Computes the gradients of the sum of `roots` with respect to every leaf that
// they were computed from, on whatever worker, and adds them to the context,
// each on its leaf's worker. Grad(leaf) stays as it is.
//
// The local part runs in the calling thread. Passes of different contexts run
// beside each other.
//
//   kNotFound            the context is not known here, or has ended.
//   kInvalidArgument     no root; or a root that requires no gradient, has more
//                        than one element, or is a leaf; or a negative timeout.
//   kFailedPrecondition  another pass of the context is running; or a part of
//                        the graph was run before without retain_graph, or was
//                        changed in place, naming workers and operation.
//   kDeadlineExceeded    not done in time, naming the forward messages whose
//                        gradients are missing.
//   kUnavailable         a worker that takes part is lost or has left, naming
//                        it.
//   kAborted             the context was ended meanwhile.
//   Errors of operations, with the workers passed in front.
// After an error gradients may have been added in part; another pass of the
// same context may follow.
absl::Status Backward(rpc::Agent& agent, ContextId context,
                      const std::vector<Tensor>& roots,
                      const BackwardOptions& options = {});
async::Future<void> BackwardAsync(rpc::Agent& agent, ContextId context,
                                  const std::vector<Tensor>& roots,
                                  const BackwardOptions& options = {});

// The same from a root of one element that lives at the owner of `root`, which
// becomes the root worker.
absl::Status Backward(rpc::Agent& agent, ContextId context,
                      const rref::RRef<Tensor>& root,
                      const BackwardOptions& options = {});

// The gradients of this worker's leaves.
//
// kNotFound: the context is not known here, or has ended.
absl::StatusOr<Gradients> GetGradients(rpc::Agent& agent, ContextId context);

}  // namespace hawser::dist_autograd

#endif  // HAWSER_DIST_AUTOGRAD_DIST_AUTOGRAD_H_

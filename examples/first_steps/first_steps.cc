// Example of a remote function call and of training through a remote reference.
// Run it in two terminals:
//
//   RANK=0 WORLD_SIZE=2 ./bazelw run //examples/first_steps
//   RANK=1 WORLD_SIZE=2 ./bazelw run //examples/first_steps
#include <iostream>

#include "async/status_macros.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/matmul.h"
#include "autograd/variable.h"
#include "dist_autograd/dist_autograd.h"
#include "dist_optim/distributed_optimizer.h"
#include "launch/worker.h"
#include "nn/loss.h"
#include "optim/sgd.h"
#include "rpc/functions/function.h"
#include "rpc/functions/function_registry.h"
#include "rref/rref.h"

namespace {

using hawser::Tensor;
namespace rpc = hawser::rpc;

// Remote functions, identified by their names. Workers can call only functions
// that are declared and registered.
inline constexpr rpc::Function<Tensor(Tensor, Tensor)> kAdd{"first.Add"};
inline constexpr rpc::Function<Tensor()> kMakeWeight{"first.MakeWeight"};

absl::Status Serve(rpc::FunctionRegistry& registry) {
  RETURN_IF_ERROR(registry.Register(kAdd, [](const Tensor& a, const Tensor& b) {
    return hawser::autograd::Add(a, b);
  }));
  return registry.Register(kMakeWeight, []() -> absl::StatusOr<Tensor> {
    Tensor weight = Tensor::Zeros({1, 2});
    RETURN_IF_ERROR(hawser::autograd::SetRequiresGrad(weight));
    return weight;
  });
}

absl::Status Train(rpc::Agent& agent) {
  ASSIGN_OR_RETURN(
      const Tensor sum,
      agent.Sync("worker0", kAdd, Tensor::Full({2}, 2), Tensor::Full({2}, 3)));
  std::cout << "2 + 3 = " << sum.DebugString() << "\n";

  // A remote reference to the weight, which stays on worker0.
  ASSIGN_OR_RETURN(auto weight,
                   hawser::rref::Remote(agent, "worker0", kMakeWeight));
  ASSIGN_OR_RETURN(auto optimizer,
                   hawser::dist_optim::DistributedOptimizer::Create(
                       agent, hawser::optim::Sgd({.lr = 0.5}), {weight}));
  const auto x = Tensor::FromVector<float>({1, 0, 0, 1, 1, 1}, {3, 2});
  const auto y = Tensor::FromVector<float>({2, -1, 1}, {3, 1});
  for (int step = 0; step < 50; ++step) {
    ASSIGN_OR_RETURN(auto context,
                     hawser::dist_autograd::ContextScope::Open(agent));
    ASSIGN_OR_RETURN(const Tensor w, weight.ToHere());
    ASSIGN_OR_RETURN(const Tensor out,
                     hawser::autograd::Linear(x, w, Tensor()));
    ASSIGN_OR_RETURN(const Tensor loss, hawser::nn::MseLoss(out, y));
    RETURN_IF_ERROR(
        hawser::dist_autograd::Backward(agent, context->id(), {loss}));
    RETURN_IF_ERROR(optimizer->Step(context->id()));
  }
  ASSIGN_OR_RETURN(const Tensor learned, weight.ToHere());
  std::cout << "learned " << learned.DebugString() << "\n";
  return absl::OkStatus();
}

absl::Status Run() {
  rpc::FunctionRegistry registry;
  RETURN_IF_ERROR(Serve(registry));
  ASSIGN_OR_RETURN(auto worker,
                   hawser::launch::Worker::Start({.registry = &registry}));
  if (worker->rank() == 1) RETURN_IF_ERROR(Train(worker->agent()));
  return worker->Shutdown();
}

}  // namespace

int main() {
  const absl::Status status = Run();
  if (!status.ok()) std::cerr << "first_steps: " << status.message() << "\n";
  return status.ok() ? 0 : 1;
}

#include "examples/mnist_ps/remote_learner.h"

#include <utility>

#include "async/future.h"
#include "async/join.h"
#include "async/status_macros.h"
#include "dist_autograd/dist_autograd.h"
#include "examples/mnist_ps/functions.h"
#include "examples/mnist_ps/model.h"
#include "rpc/agent/agent.h"

namespace hawser::examples::mnist_ps {
namespace {

absl::StatusOr<std::vector<rref::RRef<Tensor>>> PlaceParameters(
    rpc::Agent& agent, const Options& options, bool create) {
  std::vector<Tensor> initial;
  if (create) {
    ASSIGN_OR_RETURN(initial, InitialParameters(options));
  }
  std::vector<async::Future<rref::RRef<Tensor>>> references;
  for (int i = 0; i < kNumParameters; ++i) {
    const std::string server = ServerName(i / 2 % options.num_servers);
    references.push_back(
        create ? agent.Async(server, kCreateParameter, ParameterName(i),
                             initial[static_cast<size_t>(i)])
               : agent.Async(server, kFindParameter, ParameterName(i)));
  }
  return async::JoinAll(std::move(references)).Wait();
}

}  // namespace

RemoteLearner::RemoteLearner(
    JobMember& member, std::vector<rref::RRef<Tensor>> references,
    std::unique_ptr<dist_optim::DistributedOptimizer> optimizer)
    : member_(member),
      references_(std::move(references)),
      optimizer_(std::move(optimizer)) {}

absl::StatusOr<std::unique_ptr<RemoteLearner>> RemoteLearner::Create(
    JobMember& member, const Options& options, bool create) {
  ASSIGN_OR_RETURN(std::vector<rref::RRef<Tensor>> references,
                   PlaceParameters(member.agent(), options, create));
  ASSIGN_OR_RETURN(auto optimizer,
                   dist_optim::DistributedOptimizer::Create(
                       member.agent(), options.rule, references));
  return std::unique_ptr<RemoteLearner>(
      new RemoteLearner(member, std::move(references), std::move(optimizer)));
}

absl::StatusOr<double> RemoteLearner::Step(const data::Batch& batch) {
  RETURN_IF_ERROR(member_.monitor().Check());
  ASSIGN_OR_RETURN(const auto context,
                   dist_autograd::ContextScope::Open(member_.agent()));
  ASSIGN_OR_RETURN(const std::vector<Tensor> parameters, Parameters());
  ASSIGN_OR_RETURN(const Tensor loss, Loss(parameters, batch));
  RETURN_IF_ERROR(
      dist_autograd::Backward(member_.agent(), context->id(), {loss}));
  RETURN_IF_ERROR(optimizer_->Step(context->id()));
  return loss.item<float>();
}

absl::Status RemoteLearner::SetLearningRate(double learning_rate) {
  return optimizer_->SetLearningRate(learning_rate);
}

absl::StatusOr<std::vector<Tensor>> RemoteLearner::Parameters() {
  return rref::ToHereAll(references_);
}

}  // namespace hawser::examples::mnist_ps

#ifndef HAWSER_EXAMPLES_MNIST_PS_REMOTE_LEARNER_H_
#define HAWSER_EXAMPLES_MNIST_PS_REMOTE_LEARNER_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dist_optim/distributed_optimizer.h"
#include "examples/mnist_ps/job_member.h"
#include "examples/mnist_ps/options.h"
#include "examples/mnist_ps/training_loop.h"
#include "rref/rref.h"
#include "tensor/tensor.h"

namespace hawser::examples::mnist_ps {

// The model with its parameters on servers: layer i is on server i modulo the
// number of servers. A step fetches the parameters, computes loss and
// gradients, and sends the gradients to the servers, which apply them.
class RemoteLearner : public Learner {
 public:
  // Creates the parameters if `create`; otherwise waits until another trainer
  // has created them. `member` must outlive the learner.
  static absl::StatusOr<std::unique_ptr<RemoteLearner>> Create(
      JobMember& member, const Options& options, bool create);

  absl::StatusOr<double> Step(const data::Batch& batch) override;
  absl::Status SetLearningRate(double learning_rate) override;
  absl::StatusOr<std::vector<Tensor>> Parameters() override;

 private:
  RemoteLearner(JobMember& member, std::vector<rref::RRef<Tensor>> references,
                std::unique_ptr<dist_optim::DistributedOptimizer> optimizer);

  JobMember& member_;
  const std::vector<rref::RRef<Tensor>> references_;
  const std::unique_ptr<dist_optim::DistributedOptimizer> optimizer_;
};

}  // namespace hawser::examples::mnist_ps

#endif  // HAWSER_EXAMPLES_MNIST_PS_REMOTE_LEARNER_H_

// Random distributed training in a simulated job, checked against the
// guarantees of docs/dist_autograd.md.

#ifndef HAWSER_TESTS_SIMULATION_TRAINING_WORKLOAD_H_
#define HAWSER_TESTS_SIMULATION_TRAINING_WORKLOAD_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "dist_autograd/context.h"
#include "dist_autograd/engine.h"
#include "dist_optim/distributed_optimizer.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/agent_options.h"
#include "rpc/identity/worker_info.h"
#include "rpc/testing/cluster_simulation.h"
#include "rref/rref.h"
#include "tensor/tensor.h"
#include "tests/simulation/parameter_ledger.h"

namespace hawser::tests {

// Trainers on all workers with parameters on all workers. A training opens a
// context, computes a linear function of parameters over one to three workers,
// runs backward passes and takes steps of a distributed optimizer.
//
// Gradients are integers, known from the plan of the training, so that each is
// compared exactly. Violations are failures of the job, which must be destroyed
// first. Not thread-safe.
class TrainingWorkload {
 public:
  // Longer than the duration of any training.
  static constexpr absl::Duration kLongest = absl::Seconds(30);

  // Adds the services of distributed autograd and optimizers to a starting
  // worker, which has an RRefService.
  static void AddServices(rpc::AgentOptions& options);
  // Registers the functions. Call before workers start.
  void Attach(rpc::ClusterSimulation* job);
  // For ClusterSimulation::Options::on_end.
  void OnWorkerEnd(const rpc::WorkerInfo& worker) {
    ended_.insert(worker.incarnation);
  }

  void RandomAction();
  // Drops the handles of ended workers. Call between steps.
  void ForgetTheEnded();

  // Fails unless all operations have ended, and contexts only with cause. Call
  // after kLongest.
  void CheckEnds();
  // Trains with each worker as trainer and parameters on all workers, between
  // which there must be no fault, in each of `rounds`. With kAllRounds, a
  // worker uses more contexts than it may bring to another at once.
  void CheckThatAllCanTrain(int rounds);
  static constexpr int kAllRounds = 5;
  void DropAll();

 private:
  // One run of a worker.
  struct Run {
    int worker = 0;
    rpc::Incarnation incarnation{};
  };
  // A parameter that a worker refers to.
  struct Held {
    Run holder;
    int64_t number = 0;
    rref::RRef<Tensor> rref;
  };
  struct Optimizer {
    Run holder;
    std::shared_ptr<dist_optim::DistributedOptimizer> optimizer;
    std::set<int64_t> numbers;
  };
  // One call of a forward pass: output = factor * input + weight * parameter,
  // in the slot of the context.
  struct Hop {
    int worker = 0;
    int64_t factor = 1;
    int64_t weight = 1;
    int64_t number = 0;
    rref::RRef<Tensor> parameter;
  };
  // A chain of calls, each made by the function of the one before.
  struct Branch {
    std::vector<Hop> hops;
    // Whether the loss depends on it.
    bool used = true;
  };
  struct Plan {
    int64_t slot = 0;
    std::vector<Branch> branches;
    bool input_requires_grad = false;
    bool fast = false;
    int passes = 1;
    // Whether the passes run although a branch has failed.
    bool persists = false;
    absl::Duration timeout;
    std::optional<Optimizer> optimizer;
    int steps = 0;
    // Whether an error is a violation.
    bool must_succeed = false;
    // Those that ran when the training began.
    std::vector<Run> workers = {};
  };
  // The gradients of one pass.
  struct Expected {
    std::map<int64_t, double> by_parameter;
    double input = 0;
  };
  // An operation that has not ended.
  class Operation;

  void RegisterForward();
  void MakeParameter(const Run& run, int to);
  void ShareParameter(const Run& run);
  async::Future<void> MakeOptimizer(Run run, std::vector<Held> parameters,
                                    bool must_succeed);
  void DropRandomly();
  std::optional<Plan> RandomPlan(const Run& run);
  // Starts a smart and a fast training of each optimizer that must succeed.
  void TrainEverywhere();
  // Runs one training; returns OK, or its first error.
  async::Future<void> Train(Run run, Plan plan);
  async::Future<void> RunPasses(Run run, const Plan& plan,
                                std::shared_ptr<dist_autograd::Context> context,
                                Tensor loss, Tensor input,
                                const Expected& expected);
  async::Future<void> RunSteps(Run run, const Plan& plan,
                               dist_autograd::ContextId context,
                               const Expected& expected);
  async::Future<Tensor> Forward(Tensor input,
                                std::vector<rref::RRef<Tensor>> parameters,
                                std::vector<int64_t> plan);
  static std::vector<int64_t> Encode(const Plan& plan, const Branch& branch);
  static void Add(const Branch& branch, Expected& expected);

  // Checks the gradients of a context of which `ok` passes have succeeded and
  // `failed` ones have failed.
  void CheckGradients(const Run& run, const Plan& plan,
                      const dist_autograd::Context& context,
                      const Tensor& input, const Expected& expected, int ok,
                      int failed);
  // A context has ended while its trainer uses it.
  void OnCutOff(const std::vector<Run>& workers_at_begin);
  std::vector<Run> RunningWorkers() const;
  void CheckGradient(const std::string& what, double gradient, double expected,
                     int ok, int failed);
  // Fails unless `status` can follow from a fault.
  void CheckOutcome(const std::string& what, const absl::Status& status,
                    bool must_succeed);

  std::optional<Run> RunOf(int worker);
  // Null unless it still runs.
  rpc::Agent* Running(const Run& run);
  // Running owner of a parameter, of which `run` is not lost; null otherwise.
  rpc::Agent* OwnerFor(const Run& run, int64_t number);
  std::vector<Held> HeldBy(const Run& run) const;

  rpc::ClusterSimulation* job_ = nullptr;
  ParameterLedger ledger_;
  int64_t last_number_ = 0;
  int64_t next_slot_ = 0;
  int64_t num_operations_ = 0;
  std::set<rpc::Incarnation> ended_;
  // For each context that had ended on an owner while its trainer used it, the
  // workers when it began and when that was found: one of them took the trainer
  // for lost, and one of the two is lost or has left.
  std::vector<std::vector<Run>> cut_offs_;
  // Handles may outlive agents.
  std::vector<Held> held_;
  std::vector<Optimizer> optimizers_;
};

}  // namespace hawser::tests

#endif  // HAWSER_TESTS_SIMULATION_TRAINING_WORKLOAD_H_

// The parameters of a model on servers.

#ifndef HAWSER_PS_PARAMETER_SET_H_
#define HAWSER_PS_PARAMETER_SET_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "nn/module.h"
#include "optim/rule_spec.h"
#include "ps/dense_table.h"
#include "ps/storage/consistency.h"
#include "ps/table.h"
#include "ps/top_k_gradients.h"
#include "tensor/tensor.h"

namespace hawser::rpc {
class Agent;
}  // namespace hawser::rpc

namespace hawser::ps {

// Parameters with a rule of their own, for example biases without weight decay.
struct ParameterGroup {
  // Follows the name of the set and '/' in the name of the group's table.
  std::string name = {};
  optim::RuleSpec rule = {};
  // Names of parameters, as in nn::Module::named_parameters.
  std::vector<std::string> parameters = {};
};

struct ParameterSetOptions {
  // Name of the table on the servers.
  std::string name = "model";
  // As DenseTableSpec::rule, for the parameters that are in no group.
  optim::RuleSpec rule = {};
  std::vector<ParameterGroup> groups = {};
  // Share of the elements of each gradient that a step sends, in (0, 1]: those
  // with the largest magnitudes. The others are kept in this process and added
  // to the next gradients (ps/top_k_gradients.h). 1: all. Below 1, the encoding
  // in the options of a step has no effect.
  double gradient_density = 1;
  // Momentum, from 0 to below 1, that each trainer applies to its own gradients
  // before it sends them, for a rule without momentum, such as SGD. Trainers
  // that do not wait for each other reach a better model so than with one
  // momentum for all of them, in the rule. Not part of snapshots.
  double trainer_momentum = 0;
  // As TableSpec::consistency. A step of a synchronous set completes once all
  // workers have completed the clock: StepAsync, then WorkerClock::Advance,
  // then wait.
  Consistency consistency = {};
};

// The parameters of a module, kept and updated by servers. Each trainer has a
// copy in its module:
//
//   ASSIGN_OR_RETURN(
//       const auto parameters,
//       ps::ParameterSet::Create(worker->agent(), *model,
//                                {.rule = optim::Adam({.lr = 0.001})},
//                                {"ps0", "ps1"}));
//   for (...) {
//     model->ZeroGrad();
//     ... loss of model->Forward(...) ...
//     RETURN_IF_ERROR(autograd::Backward(loss));
//     RETURN_IF_ERROR(parameters->Step());
//   }
//
// A step costs one round trip to each server: it sends the gradients, and gets
// the parameters after the update, which contain the updates of other trainers
// as well. Trainers do not wait for each other. With one trainer, training is
// the same as with optim::Optimizer.
//
// Thread-compatible. A pass through the module must not overlap with a call, or
// with an asynchronous one until its future completes. The module must outlive
// the set and its futures. Errors are those of DenseTable.
class ParameterSet {
 public:
  // Creates the tables on the workers `servers`, unless they exist, gives them
  // the parameters of `module` as initial weights, and fetches. Any number of
  // trainers may do so, at any time: each chunk of the parameters is
  // initialised once, by the first of them. Give all of them the same initial
  // weights, for example by the same seed.
  //
  //   kInvalidArgument  a parameter is not f32, contiguous and on the CPU; a
  //                     gradient_density or trainer_momentum is out of range; a
  //                     group names one that the module lacks, or that another
  //                     group has; or a rule cannot update chunks.
  //   kAlreadyExists    there is a table of that name for another module, with
  //                     another rule, or on other servers.
  static absl::StatusOr<std::unique_ptr<ParameterSet>> Create(
      rpc::Agent& agent, nn::Module& module, const ParameterSetOptions& options,
      const std::vector<std::string>& servers);

  // The same from a snapshot, with the state of the rules, onto any number of
  // servers; replaces tables of that name. Called by one trainer, before the
  // others call Create. Errors of Table::Restore.
  static absl::StatusOr<std::unique_ptr<ParameterSet>> Restore(
      rpc::Agent& agent, nn::Module& module, const ParameterSetOptions& options,
      const std::string& snapshot, const std::vector<std::string>& servers);

  // The tables on the servers, to join their clock.
  std::vector<Table> tables() const;

  // Copies the parameters from the servers to the module.
  absl::Status Fetch();
  async::Future<void> FetchAsync();

  // Sends the gradients of the module, and copies the updated parameters to it.
  // Gradients stay; a parameter without one counts as one with a gradient of
  // zero. After an error the module is as before, and parts of the parameters
  // may have been updated on the servers.
  absl::Status Step(const PushOptions& options = {});
  // Gradients can be dropped meanwhile, for example to load the next batch, but
  // not changed.
  async::Future<void> StepAsync(const PushOptions& options = {});

  // Writes the parameters on the servers and the module's buffers to a file, as
  // nn::SaveModule does, after copying them to the module.
  absl::Status Save(const std::string& path);
  // Copies such a file to the module and to the servers, for all trainers; the
  // state of the rules begins anew. Errors of nn::LoadModule.
  absl::Status Load(const std::string& path);

  // Writes the parameters and the state of the rules to the snapshot
  // directories of the servers, as Table::Save.
  async::Future<TableSize> SaveSnapshot(const std::string& name,
                                        const SaveOptions& options = {}) const;

 private:
  // Parameters of one table, in its order.
  struct Part {
    DenseTable table;
    std::vector<Tensor> parameters;
    // With momentum: what it has accumulated for each parameter.
    std::vector<Tensor> velocities;
    // One for each parameter, unless whole gradients are sent.
    std::vector<TopKGradients> top_k = {};
  };

  ParameterSet(nn::Module& module, std::vector<Part> parts, double momentum)
      : module_(module), momentum_(momentum), parts_(std::move(parts)) {}

  // Returns the gradient with momentum; it may be undefined.
  absl::StatusOr<Tensor> AddMomentum(const Tensor& gradient,
                                     Tensor& velocity) const;
  // Gradients of a part, as they are sent.
  absl::StatusOr<std::vector<Tensor>> GradientsOf(Part& part) const;

  absl::Status Assign(const AssignOptions& options);
  // Copies the values of each part to the module, once they are there.
  async::Future<void> CopyToModule(
      std::vector<async::Future<std::vector<Tensor>>> values) const;

  nn::Module& module_;
  const double momentum_;
  std::vector<Part> parts_;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_PARAMETER_SET_H_

#include "ps/parameter_set.h"

#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/future.h"
#include "async/join.h"
#include "async/status_macros.h"
#include "autograd/variable.h"
#include "nn/module.h"
#include "nn/module_file.h"
#include "ps/dense_table.h"
#include "ps/row_encoding.h"
#include "ps/storage/table_spec.h"
#include "ps/table.h"
#include "ps/top_k_gradients.h"
#include "rpc/agent/agent.h"
#include "tensor/dtype.h"
#include "tensor/flush_denormals.h"
#include "tensor/ops/elementwise.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

// A table to be, with the parameters that it holds.
struct Plan {
  DenseTableSpec spec;
  std::vector<Tensor> parameters;
};

absl::Status CheckParameter(const std::string& name, const Tensor& parameter) {
  if (parameter.dtype() == tensor::DType::kF32 && parameter.device().is_cpu() &&
      parameter.is_contiguous()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("parameter \"", name, "\" is ", parameter.ToString(),
                   "; servers keep contiguous f32 on cpu"));
}

// The index of the group of each parameter that is in one.
absl::StatusOr<std::map<std::string, size_t>> GroupsByParameter(
    const nn::NamedTensors& parameters, const ParameterSetOptions& options) {
  std::map<std::string, size_t> unknown;
  for (const auto& [name, parameter] : parameters) unknown[name] = 0;
  std::map<std::string, size_t> groups;
  for (size_t i = 0; i < options.groups.size(); ++i) {
    for (const std::string& name : options.groups[i].parameters) {
      if (!unknown.contains(name)) {
        return absl::InvalidArgumentError(
            absl::StrCat("group \"", options.groups[i].name,
                         "\": the module has no parameter \"", name, "\""));
      }
      if (!groups.emplace(name, i).second) {
        return absl::InvalidArgumentError(
            absl::StrCat("parameter \"", name, "\" is named in groups twice"));
      }
    }
  }
  return groups;
}

// The tables of a module: that of the parameters without group, then those of
// the groups, without empty ones.
absl::StatusOr<std::vector<Plan>> PlanTables(
    const nn::Module& module, const ParameterSetOptions& options) {
  const nn::NamedTensors parameters = module.named_parameters();
  ASSIGN_OR_RETURN(const auto groups, GroupsByParameter(parameters, options));
  std::vector<Plan> plans(1 + options.groups.size());
  plans[0].spec = {.name = options.name,
                   .rule = options.rule,
                   .consistency = options.consistency};
  for (size_t i = 0; i < options.groups.size(); ++i) {
    plans[i + 1].spec = {
        .name = absl::StrCat(options.name, "/", options.groups[i].name),
        .rule = options.groups[i].rule,
        .consistency = options.consistency};
  }
  for (const auto& [name, parameter] : parameters) {
    RETURN_IF_ERROR(CheckParameter(name, parameter));
    const auto group = groups.find(name);
    Plan& plan = plans[group == groups.end() ? 0 : group->second + 1];
    plan.spec.tensors.push_back({name, parameter.shape()});
    plan.parameters.push_back(parameter);
  }
  std::erase_if(plans,
                [](const Plan& plan) { return plan.parameters.empty(); });
  if (plans.empty()) {
    return absl::InvalidArgumentError("the module has no parameters");
  }
  return plans;
}

void CopyTo(const std::vector<Tensor>& parameters,
            const std::vector<Tensor>& values) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    // Without a record of the graph, which does not contain this write.
    Tensor parameter = parameters[i].Detach();
    std::memcpy(parameter.data<float>(), values[i].data<float>(),
                static_cast<size_t>(parameter.byte_size()));
    parameter.BumpVersion();
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<ParameterSet>> ParameterSet::Create(
    rpc::Agent& agent, nn::Module& module, const ParameterSetOptions& options,
    const std::vector<std::string>& servers) {
  if (!(options.trainer_momentum >= 0 && options.trainer_momentum < 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the momentum of a trainer must be from 0 to below 1, not ",
        options.trainer_momentum));
  }
  ASSIGN_OR_RETURN(const std::vector<Plan> plans, PlanTables(module, options));
  const double density = options.gradient_density;
  if (!(density > 0 && density <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("gradient_density must be in (0, 1], not ", density));
  }
  std::vector<Part> parts;
  for (const Plan& plan : plans) {
    ASSIGN_OR_RETURN(DenseTable table,
                     DenseTable::Create(agent, plan.spec, servers));
    parts.push_back({std::move(table), plan.parameters,
                     std::vector<Tensor>(plan.parameters.size())});
    if (density < 1) {
      parts.back().top_k.assign(plan.parameters.size(), TopKGradients(density));
    }
  }
  std::unique_ptr<ParameterSet> set(
      new ParameterSet(module, std::move(parts), options.trainer_momentum));
  RETURN_IF_ERROR(set->Assign({.keep_existing = true}));
  RETURN_IF_ERROR(set->Fetch());
  return set;
}

absl::StatusOr<std::unique_ptr<ParameterSet>> ParameterSet::Restore(
    rpc::Agent& agent, nn::Module& module, const ParameterSetOptions& options,
    const std::string& snapshot, const std::vector<std::string>& servers) {
  ASSIGN_OR_RETURN(const std::vector<Plan> plans, PlanTables(module, options));
  for (const Plan& plan : plans) {
    RETURN_IF_ERROR(
        DenseTable::Restore(agent, plan.spec.name, snapshot, servers).status());
  }
  // Checks that the tables are those of this module.
  return Create(agent, module, options, servers);
}

absl::Status ParameterSet::Assign(const AssignOptions& options) {
  std::vector<async::Future<void>> done;
  for (const Part& part : parts_) {
    done.push_back(part.table.Assign(part.parameters, options));
  }
  return async::JoinAll(std::move(done)).Wait();
}

async::Future<void> ParameterSet::CopyToModule(
    std::vector<async::Future<std::vector<Tensor>>> values) const {
  std::vector<std::vector<Tensor>> targets;
  for (const Part& part : parts_) targets.push_back(part.parameters);
  return async::JoinAll(std::move(values))
      .Then([targets = std::move(targets)](
                const absl::StatusOr<std::vector<std::vector<Tensor>>>& parts) {
        RETURN_IF_ERROR(parts);
        for (size_t i = 0; i < targets.size(); ++i) {
          CopyTo(targets[i], (*parts)[i]);
        }
        return absl::OkStatus();
      });
}

std::vector<Table> ParameterSet::tables() const {
  std::vector<Table> tables;
  for (const Part& part : parts_) tables.push_back(part.table.table());
  return tables;
}

absl::Status ParameterSet::Fetch() { return FetchAsync().Wait(); }

async::Future<void> ParameterSet::FetchAsync() {
  std::vector<async::Future<std::vector<Tensor>>> pulled;
  for (const Part& part : parts_) pulled.push_back(part.table.Pull());
  return CopyToModule(std::move(pulled));
}

absl::Status ParameterSet::Step(const PushOptions& options) {
  return StepAsync(options).Wait();
}

absl::StatusOr<Tensor> ParameterSet::AddMomentum(const Tensor& gradient,
                                                 Tensor& velocity) const {
  if (momentum_ == 0) return gradient;
  if (!velocity.defined()) {
    if (gradient.defined()) {
      ASSIGN_OR_RETURN(velocity, gradient.Clone());
    }
    return velocity;
  }
  if (!gradient.defined()) {
    ASSIGN_OR_RETURN(velocity, tensor::MulScalar(velocity, momentum_));
    return velocity;
  }
  const tensor::FlushDenormals flush;
  // In new memory: an earlier step that failed may still send the old one.
  // Rounds once, as the rule does.
  ASSIGN_OR_RETURN(velocity, tensor::AddScaled(gradient, velocity, momentum_));
  return velocity;
}

absl::StatusOr<std::vector<Tensor>> ParameterSet::GradientsOf(
    Part& part) const {
  std::vector<Tensor> gradients;
  gradients.reserve(part.parameters.size());
  for (size_t i = 0; i < part.parameters.size(); ++i) {
    ASSIGN_OR_RETURN(
        Tensor gradient,
        AddMomentum(autograd::Grad(part.parameters[i]), part.velocities[i]));
    gradients.push_back(std::move(gradient));
  }
  for (size_t i = 0; i < part.top_k.size(); ++i) {
    const Tensor& parameter = part.parameters[i];
    const Tensor gradient = gradients[i].defined()
                                ? *gradients[i].Contiguous()
                                : Tensor::Zeros(parameter.shape());
    gradients[i] = part.top_k[i].Choose(gradient);
  }
  return gradients;
}

async::Future<void> ParameterSet::StepAsync(const PushOptions& options) {
  std::vector<async::Future<std::vector<Tensor>>> pulled;
  for (Part& part : parts_) {
    PushOptions of_part = options;
    if (!part.top_k.empty()) of_part.encoding = RowEncoding::kNonZero;
    const absl::StatusOr<std::vector<Tensor>> gradients = GradientsOf(part);
    if (!gradients.ok())
      return async::MakeReadyFuture<void>(gradients.status());
    pulled.push_back(part.table.PushPull(*gradients, of_part));
  }
  return CopyToModule(std::move(pulled));
}

absl::Status ParameterSet::Save(const std::string& path) {
  RETURN_IF_ERROR(Fetch());
  return nn::SaveModule(module_, path);
}

absl::Status ParameterSet::Load(const std::string& path) {
  RETURN_IF_ERROR(nn::LoadModule(module_, path));
  for (Part& part : parts_) part.velocities.assign(part.velocities.size(), {});
  return Assign({});
}

async::Future<TableSize> ParameterSet::SaveSnapshot(
    const std::string& name, const SaveOptions& options) const {
  std::vector<async::Future<TableSize>> saved;
  for (const Part& part : parts_) {
    saved.push_back(part.table.table().Save(name, options));
  }
  return async::JoinAll(std::move(saved))
      .Then([](const absl::StatusOr<std::vector<TableSize>>& sizes)
                -> absl::StatusOr<TableSize> {
        RETURN_IF_ERROR(sizes);
        TableSize total;
        for (const TableSize& size : *sizes) {
          total.rows += size.rows;
          total.bytes += size.bytes;
        }
        return total;
      });
}

}  // namespace hawser::ps

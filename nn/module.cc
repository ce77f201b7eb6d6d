#include "nn/module.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "async/check.h"
#include "async/status_macros.h"
#include "autograd/grad_mode.h"
#include "autograd/variable.h"
#include "tensor/device.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::nn {
namespace {

std::string Joined(std::string_view prefix, std::string_view name) {
  std::string joined(prefix);
  if (!joined.empty()) joined += '.';
  joined += name;
  return joined;
}

// The reason why `source` cannot be copied to `target`; empty if it can.
std::string WhyNot(const std::string& name, const Tensor& target,
                   const Tensor& source) {
  if (!source.defined()) return absl::StrCat(name, " is undefined");
  const bool converts =
      source.dtype() == target.dtype() ||
      (IsFloatingPoint(source.dtype()) && IsFloatingPoint(target.dtype()));
  if (converts && source.shape() == target.shape()) return "";
  return absl::StrCat(name, " is ", source.ToString(), " instead of ",
                      target.ToString());
}

}  // namespace

void Module::CheckName(std::string_view name) const {
  HAWSER_CHECK(!name.empty() && name.find('.') == std::string_view::npos)
      << "the name of a parameter, buffer or module must not be empty or "
         "contain a dot: "
      << name;
  for (const auto& [known, tensor] : parameters_) {
    HAWSER_CHECK(known != name) << name << " is registered twice";
  }
  for (const auto& [known, tensor] : buffers_) {
    HAWSER_CHECK(known != name) << name << " is registered twice";
  }
  for (const auto& [known, module] : modules_) {
    HAWSER_CHECK(known != name) << name << " is registered twice";
  }
}

void Module::RegisterParameter(std::string name, Tensor* tensor) {
  CheckName(name);
  if (!tensor->defined()) return;
  const absl::Status status = autograd::SetRequiresGrad(*tensor);
  HAWSER_CHECK(status.ok()) << name << ": " << status.ToString();
  parameters_.emplace_back(std::move(name), tensor);
}

void Module::RegisterBuffer(std::string name, Tensor* tensor) {
  CheckName(name);
  if (tensor->defined()) buffers_.emplace_back(std::move(name), tensor);
}

void Module::AddModule(std::string name, std::unique_ptr<Module> module) {
  CheckName(name);
  HAWSER_CHECK(module != nullptr) << name << " is a null module";
  modules_.emplace_back(std::move(name), std::move(module));
}

void Module::Collect(std::string_view prefix, bool parameters,
                     NamedTensors& result) const {
  for (const auto& [name, tensor] : parameters ? parameters_ : buffers_) {
    result.emplace_back(Joined(prefix, name), *tensor);
  }
  for (const auto& [name, module] : modules_) {
    module->Collect(Joined(prefix, name), parameters, result);
  }
}

NamedTensors Module::named_parameters() const {
  NamedTensors result;
  Collect("", /*parameters=*/true, result);
  return result;
}

NamedTensors Module::named_buffers() const {
  NamedTensors result;
  Collect("", /*parameters=*/false, result);
  return result;
}

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> result;
  for (auto& [name, tensor] : named_parameters()) result.push_back(tensor);
  return result;
}

void Module::Train(bool training) {
  training_ = training;
  for (const auto& [name, module] : modules_) module->Train(training);
}

void Module::ZeroGrad() {
  for (const Tensor& parameter : parameters()) autograd::ZeroGrad(parameter);
}

absl::Status Module::Replace(TensorMap map) {
  const autograd::NoGradGuard no_grad;
  for (auto& [name, tensor] : parameters_) {
    ASSIGN_OR_RETURN(const Tensor mapped, map(*tensor));
    if (mapped.is_same(*tensor)) continue;
    // A frozen parameter stays frozen.
    RETURN_IF_ERROR(
        autograd::SetRequiresGrad(mapped, autograd::RequiresGrad(*tensor)));
    *tensor = mapped;
  }
  for (auto& [name, tensor] : buffers_) {
    ASSIGN_OR_RETURN(*tensor, map(*tensor));
  }
  for (const auto& [name, module] : modules_) {
    RETURN_IF_ERROR(module->Replace(map));
  }
  return absl::OkStatus();
}

absl::Status Module::To(tensor::DType dtype) {
  if (!IsFloatingPoint(dtype)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a module cannot be converted to ", std::string(DTypeName(dtype)),
        ": its parameters must be floating point"));
  }
  return Replace([dtype](const Tensor& tensor) -> absl::StatusOr<Tensor> {
    if (!IsFloatingPoint(tensor.dtype())) return tensor;
    return tensor.To(dtype);
  });
}

absl::Status Module::To(tensor::Device device) {
  return Replace([device](const Tensor& tensor) { return tensor.To(device); });
}

NamedTensors Module::StateDict() const {
  NamedTensors result = named_parameters();
  Collect("", /*parameters=*/false, result);
  return result;
}

absl::Status Module::LoadStateDict(const NamedTensors& state) {
  const NamedTensors own = StateDict();
  absl::flat_hash_map<std::string, const Tensor*> given;
  std::vector<std::string> errors;
  for (const auto& [name, tensor] : state) {
    if (!given.emplace(name, &tensor).second) {
      errors.push_back(absl::StrCat(name, " is given twice"));
    }
  }
  absl::flat_hash_map<std::string, const Tensor*> unexpected = given;
  for (const auto& [name, tensor] : own) {
    unexpected.erase(name);
    const auto found = given.find(name);
    std::string error = found == given.end()
                            ? absl::StrCat(name, " is missing")
                            : WhyNot(name, tensor, *found->second);
    if (!error.empty()) errors.push_back(std::move(error));
  }
  for (const auto& [name, tensor] : state) {
    if (unexpected.erase(name) == 0) continue;
    errors.push_back(absl::StrCat(name, " is unexpected"));
  }
  if (!errors.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the state does not match the module: ", absl::StrJoin(errors, "; ")));
  }
  const autograd::NoGradGuard no_grad;
  for (auto [name, tensor] : own) {
    RETURN_IF_ERROR(tensor.CopyFrom(*given[name]));
  }
  return absl::OkStatus();
}

}  // namespace hawser::nn

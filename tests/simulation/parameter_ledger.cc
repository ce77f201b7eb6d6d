#include "tests/simulation/parameter_ledger.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "autograd/variable.h"

namespace hawser::tests {

std::string ParameterLedger::Create(int64_t number, rpc::Incarnation owner,
                                    Tensor& parameter) {
  if (parameters_.contains(number)) {
    return absl::StrCat("parameter ", number, " was created twice");
  }
  parameter = Tensor::Zeros({kSlots}, {.dtype = tensor::DType::kF64});
  const absl::Status status = autograd::SetRequiresGrad(parameter);
  if (!status.ok()) return status.ToString();
  parameters_[number] = {parameter, owner, {}};
  return "";
}

Tensor ParameterLedger::Find(int64_t number) const {
  const auto found = parameters_.find(number);
  return found == parameters_.end() ? Tensor() : found->second.tensor;
}

rpc::Incarnation ParameterLedger::OwnerOf(int64_t number) const {
  const auto found = parameters_.find(number);
  return found == parameters_.end() ? rpc::Incarnation{} : found->second.owner;
}

void ParameterLedger::BeginStep(int64_t number, int64_t slot, double gradient) {
  Slot& entry = parameters_[number].slots[slot];
  entry.gradient = gradient;
  ++entry.begun;
}

void ParameterLedger::Applied(int64_t number, int64_t slot) {
  ++parameters_[number].slots[slot].applied;
}

std::string ParameterLedger::Check() const {
  for (const auto& [number, parameter] : parameters_) {
    const double* const values = parameter.tensor.data<double>();
    for (int64_t i = 0; i < kSlots; ++i) {
      const auto found = parameter.slots.find(i);
      const Slot slot = found == parameter.slots.end() ? Slot() : found->second;
      bool fits = false;
      for (int64_t n = slot.applied; n <= slot.begun; ++n) {
        fits |= values[i] == -slot.gradient * static_cast<double>(n);
      }
      if (fits) continue;
      return absl::StrCat("parameter ", number, " is ", values[i], " in slot ",
                          i, " after ", slot.begun, " steps with gradient ",
                          slot.gradient, ", of which ", slot.applied,
                          " were applied");
    }
  }
  return "";
}

}  // namespace hawser::tests

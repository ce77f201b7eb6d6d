// Expected values of the parameters of a simulated training.

#ifndef HAWSER_TESTS_SIMULATION_PARAMETER_LEDGER_H_
#define HAWSER_TESTS_SIMULATION_PARAMETER_LEDGER_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "rpc/identity/worker_info.h"
#include "tensor/tensor.h"

namespace hawser::tests {

// Parameters with `kSlots` elements, all 0 at first. Each distributed autograd
// context has a slot of its own, in which alone it has a gradient, an integer.
// Optimizers subtract gradients. An element therefore tells how often a step of
// its context was applied. Violations are returned as text, empty if there is
// none. Not thread-safe.
class ParameterLedger {
 public:
  static constexpr int64_t kSlots = 96;

  // Creates parameter `number` on the worker; called at its creation.
  std::string Create(int64_t number, rpc::Incarnation owner, Tensor& parameter);
  // The tensor of a parameter; undefined before its creation.
  Tensor Find(int64_t number) const;
  rpc::Incarnation OwnerOf(int64_t number) const;

  // A step begins that may subtract `gradient` once, and has been applied.
  void BeginStep(int64_t number, int64_t slot, double gradient);
  void Applied(int64_t number, int64_t slot);

  // Checks that each step that was applied changed its parameter once, each
  // other step at most once, and nothing else changed it.
  std::string Check() const;

 private:
  struct Slot {
    double gradient = 0;
    int64_t begun = 0;
    int64_t applied = 0;
  };
  struct Parameter {
    Tensor tensor;
    rpc::Incarnation owner{};
    std::map<int64_t, Slot> slots;
  };

  std::map<int64_t, Parameter> parameters_;
};

}  // namespace hawser::tests

#endif  // HAWSER_TESTS_SIMULATION_PARAMETER_LEDGER_H_

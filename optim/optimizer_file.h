#ifndef HAWSER_OPTIM_OPTIMIZER_FILE_H_
#define HAWSER_OPTIM_OPTIMIZER_FILE_H_

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optim/optimizer.h"
#include "tensor/io/safetensors.h"

// The state of an optimizer as named tensors and text: what a checkpoint needs
// beside the parameters so that training goes on as if it had not stopped.
//
//   tensors   "state.<i>.<slot>" and "state.<i>.step" (i64, rank 0) for each
//             parameter <i>, in the order of Optimizer::parameters(), that has
//             been updated.
//   metadata  "group.<g>.rule": the rule of group <g> with its present options,
//             in the form of RuleSpec::ToString. "group.<g>.parameters": how
//             many there are. "groups": how many groups.
namespace hawser::optim {

// Handles on the state itself: valid as a snapshot until the next step.
tensor::SafetensorsFile GetState(const Optimizer& optimizer);

// Copies such a state, and the options of each group, into an optimizer of the
// same rule over parameters of the same shapes.
//
// kInvalidArgument: it is of another rule or of other parameters, or a tensor
// or entry is missing, unexpected, or not as described above; nothing was
// changed.
absl::Status SetState(Optimizer& optimizer,
                      const tensor::SafetensorsFile& state);

// The same to and from a safetensors file. Errors of tensor/io/safetensors.h
// too.
absl::Status SaveOptimizer(const Optimizer& optimizer, std::string_view path);
absl::Status LoadOptimizer(Optimizer& optimizer, std::string_view path);

}  // namespace hawser::optim

#endif  // HAWSER_OPTIM_OPTIMIZER_FILE_H_

#ifndef HAWSER_OPTIM_OPTIMIZER_FILE_H_
#define HAWSER_OPTIM_OPTIMIZER_FILE_H_

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "optim/optimizer.h"
#include "tensor/io/safetensors.h"

// The state of an optimizer as named tensors and text. A checkpoint contains it
// in addition to the parameters, so that training resumes exactly.
//
//   tensors   "state.<i>.<slot>" and "state.<i>.step" (i64, rank 0) for each
//             parameter <i>, in the order of Optimizer::parameters(), that has
//             been updated.
//   metadata  "group.<g>.rule": the rule of group <g> with its current options,
//             in the form of RuleSpec::ToString. "group.<g>.parameters": its
//             number of parameters. "groups": the number of groups.
namespace hawser::optim {

// Returns handles to the state, without copies. They are a snapshot until the
// next step.
tensor::SafetensorsFile GetState(const Optimizer& optimizer);

// Copies such a state, and the options of each group, to an optimizer with the
// same rule and with parameters of the same shapes.
//
// kInvalidArgument: the state is that of another rule or of other parameters,
// or a tensor or entry is missing, unexpected or malformed. Nothing was changed
// then.
absl::Status SetState(Optimizer& optimizer,
                      const tensor::SafetensorsFile& state);

// The same with a safetensors file. Also returns the errors of
// tensor/io/safetensors.h.
absl::Status SaveOptimizer(const Optimizer& optimizer, std::string_view path);
absl::Status LoadOptimizer(Optimizer& optimizer, std::string_view path);

}  // namespace hawser::optim

#endif  // HAWSER_OPTIM_OPTIMIZER_FILE_H_

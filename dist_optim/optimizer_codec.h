#ifndef HAWSER_DIST_OPTIM_OPTIMIZER_CODEC_H_
#define HAWSER_DIST_OPTIM_OPTIMIZER_CODEC_H_

#include <vector>

#include "absl/status/statusor.h"
#include "dist_optim/owner_optimizer.h"
#include "google/protobuf/repeated_field.h"
#include "proto/dist_optim.pb.h"
#include "tensor/tensor.h"

namespace hawser::dist_optim {

// Conversions between states and the messages of proto/dist_optim.proto.

// Appends the state: a rule per group, a header per parameter, and tensors.
void WriteState(
    const std::vector<GroupState>& state,
    google::protobuf::RepeatedPtrField<v1::OptimizerRule>& rules,
    google::protobuf::RepeatedPtrField<v1::OptimizerParameterState>& parameters,
    std::vector<Tensor>& tensors);

// Reads a state, in which group g has `group_sizes[g]` parameters.
//
// kInvalidArgument: the number of rules, parameters or tensors does not fit.
absl::StatusOr<std::vector<GroupState>> ReadState(
    const google::protobuf::RepeatedPtrField<v1::OptimizerRule>& rules,
    const google::protobuf::RepeatedPtrField<v1::OptimizerParameterState>&
        parameters,
    std::vector<Tensor> tensors, const std::vector<size_t>& group_sizes);

}  // namespace hawser::dist_optim

#endif  // HAWSER_DIST_OPTIM_OPTIMIZER_CODEC_H_

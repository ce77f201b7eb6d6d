// Methods by which workers serve distributed optimizers to each other:
// proto/dist_optim.proto.

#ifndef HAWSER_DIST_OPTIM_SERVICE_METHODS_H_
#define HAWSER_DIST_OPTIM_SERVICE_METHODS_H_

#include "proto/dist_optim.pb.h"
#include "rpc/functions/service_method.h"

namespace hawser::dist_optim {

inline constexpr rpc::ServiceMethod<v1::CreateOptimizerRequest,
                                    v1::CreateOptimizerReply>
    kCreateOptimizerMethod{"hawser.v1.DistOptimService.CreateOptimizer"};
inline constexpr rpc::ServiceMethod<v1::OptimizerStepRequest,
                                    v1::OptimizerStepReply>
    kOptimizerStepMethod{"hawser.v1.DistOptimService.Step"};
inline constexpr rpc::ServiceMethod<v1::SetOptimizerOptionRequest,
                                    v1::SetOptimizerOptionReply>
    kSetOptimizerOptionMethod{"hawser.v1.DistOptimService.SetOptimizerOption"};
inline constexpr rpc::ServiceMethod<v1::GetOptimizerStateRequest,
                                    v1::GetOptimizerStateReply>
    kGetOptimizerStateMethod{"hawser.v1.DistOptimService.GetOptimizerState"};
inline constexpr rpc::ServiceMethod<v1::SetOptimizerStateRequest,
                                    v1::SetOptimizerStateReply>
    kSetOptimizerStateMethod{"hawser.v1.DistOptimService.SetOptimizerState"};

}  // namespace hawser::dist_optim

#endif  // HAWSER_DIST_OPTIM_SERVICE_METHODS_H_

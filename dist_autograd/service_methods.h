// Methods by which workers serve distributed autograd to each other:
// proto/dist_autograd.proto.

#ifndef HAWSER_DIST_AUTOGRAD_SERVICE_METHODS_H_
#define HAWSER_DIST_AUTOGRAD_SERVICE_METHODS_H_

#include "proto/dist_autograd.pb.h"
#include "rpc/functions/service_method.h"

namespace hawser::dist_autograd {

inline constexpr rpc::ServiceMethod<v1::GradientRequest, v1::GradientReply>
    kGradientMethod{"hawser.v1.DistAutogradService.Gradient"};
inline constexpr rpc::ServiceMethod<v1::AbortPassRequest, v1::AbortPassReply>
    kAbortPassMethod{"hawser.v1.DistAutogradService.AbortPass"};
inline constexpr rpc::ServiceMethod<v1::ReleaseContextRequest,
                                    v1::ReleaseContextReply>
    kReleaseContextMethod{"hawser.v1.DistAutogradService.ReleaseContext"};
inline constexpr rpc::ServiceMethod<v1::ReparentContextsRequest,
                                    v1::ReparentContextsReply>
    kReparentContextsMethod{"hawser.v1.DistAutogradService.ReparentContexts"};
inline constexpr rpc::ServiceMethod<v1::BackwardReferenceRequest,
                                    v1::BackwardReferenceReply>
    kBackwardReferenceMethod{"hawser.v1.DistAutogradService.BackwardReference"};

}  // namespace hawser::dist_autograd

#endif  // HAWSER_DIST_AUTOGRAD_SERVICE_METHODS_H_

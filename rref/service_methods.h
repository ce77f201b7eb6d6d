// Methods by which workers serve references to each other: proto/rref.proto.

#ifndef HAWSER_RREF_SERVICE_METHODS_H_
#define HAWSER_RREF_SERVICE_METHODS_H_

#include "proto/rref.pb.h"
#include "rpc/functions/service_method.h"

namespace hawser::rref {

inline constexpr rpc::ServiceMethod<v1::RRefCreateRequest, v1::RRefCreateReply>
    kCreateMethod{"hawser.v1.RRefService.Create"};
inline constexpr rpc::ServiceMethod<v1::RRefFetchRequest, v1::RRefFetchReply>
    kFetchMethod{"hawser.v1.RRefService.Fetch"};
inline constexpr rpc::ServiceMethod<v1::RRefControlRequest,
                                    v1::RRefControlReply>
    kControlMethod{"hawser.v1.RRefService.Control"};

}  // namespace hawser::rref

#endif  // HAWSER_RREF_SERVICE_METHODS_H_

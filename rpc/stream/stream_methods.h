// The methods by which workers serve streams to each other: proto/stream.proto.

#ifndef HAWSER_RPC_STREAM_STREAM_METHODS_H_
#define HAWSER_RPC_STREAM_STREAM_METHODS_H_

#include "proto/stream.pb.h"
#include "rpc/functions/service_method.h"

namespace hawser::rpc {

inline constexpr ServiceMethod<v1::StreamOpenRequest, v1::StreamOpenReply>
    kStreamOpenMethod{"hawser.v1.StreamService.Open"};
inline constexpr ServiceMethod<v1::StreamNextRequest, v1::StreamNextReply>
    kStreamNextMethod{"hawser.v1.StreamService.Next"};
inline constexpr ServiceMethod<v1::StreamCloseRequest, v1::StreamCloseReply>
    kStreamCloseMethod{"hawser.v1.StreamService.Close"};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_STREAM_STREAM_METHODS_H_

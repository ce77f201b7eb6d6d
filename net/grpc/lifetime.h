#ifndef HAWSER_NET_GRPC_LIFETIME_H_
#define HAWSER_NET_GRPC_LIFETIME_H_

namespace hawser::net {

// Keeps gRPC initialised until the process ends. Call it before creating the
// first gRPC object. Otherwise destroying the last gRPC object may block up to
// 10 s until an internal poll of gRPC returns. Thread-safe.
void KeepGrpcLoaded();

}  // namespace hawser::net

#endif  // HAWSER_NET_GRPC_LIFETIME_H_

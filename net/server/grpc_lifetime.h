#ifndef HAWSER_NET_SERVER_GRPC_LIFETIME_H_
#define HAWSER_NET_SERVER_GRPC_LIFETIME_H_

namespace hawser::store {

// Keeps gRPC initialised until the process ends; whatever uses it calls this
// before it makes its first object of gRPC's. Otherwise the end of the last one
// may wait 10 s for a poll of gRPC's own to return. Thread-safe.
void KeepGrpcLoaded();

}  // namespace hawser::store

#endif  // HAWSER_NET_SERVER_GRPC_LIFETIME_H_

// Size limit of the metadata of a call.

#ifndef HAWSER_NET_GRPC_METADATA_LIMIT_H_
#define HAWSER_NET_GRPC_METADATA_LIMIT_H_

namespace hawser::net {

// Default limit on the metadata of a request or a reply, in bytes; gRPC's
// default.
inline constexpr int kMaxMetadataBytes = 8 << 10;

}  // namespace hawser::net

#endif  // HAWSER_NET_GRPC_METADATA_LIMIT_H_

// Size limit of the headers of a call.

#ifndef HAWSER_NET_SERVER_METADATA_LIMIT_H_
#define HAWSER_NET_SERVER_METADATA_LIMIT_H_

namespace hawser::net {

// Of a request or a reply, in bytes, unless set otherwise. gRPC's own.
inline constexpr int kMaxMetadataBytes = 8 << 10;

}  // namespace hawser::net

#endif  // HAWSER_NET_SERVER_METADATA_LIMIT_H_

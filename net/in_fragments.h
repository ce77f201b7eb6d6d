// Names of the methods of proto/fragments.proto.

#ifndef HAWSER_NET_IN_FRAGMENTS_H_
#define HAWSER_NET_IN_FRAGMENTS_H_

#include <string_view>

namespace hawser::net {

// Suffix of a unary method's path for requests sent in fragments.
inline constexpr std::string_view kInFragments = "InFragments";

}  // namespace hawser::net

#endif  // HAWSER_NET_IN_FRAGMENTS_H_

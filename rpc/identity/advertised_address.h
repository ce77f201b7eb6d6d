// Address at which peers reach a worker.

#ifndef HAWSER_RPC_IDENTITY_ADVERTISED_ADDRESS_H_
#define HAWSER_RPC_IDENTITY_ADVERTISED_ADDRESS_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hawser::rpc {

// Returns the address at which peers reach a worker whose transport serves at
// `serving`: `advertised`, with a port 0 replaced by the port of `serving`, or
// `serving` if `advertised` is empty.
//
// kInvalidArgument if `advertised` is malformed, or is empty while `serving` is
// a wildcard address, to which peers cannot connect, or if the result is not
// UTF-8.
absl::StatusOr<std::string> AdvertisedAddress(std::string_view advertised,
                                              std::string_view serving);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_IDENTITY_ADVERTISED_ADDRESS_H_

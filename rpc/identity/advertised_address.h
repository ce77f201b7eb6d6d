// Address at which peers reach a worker.

#ifndef HAWSER_RPC_IDENTITY_ADVERTISED_ADDRESS_H_
#define HAWSER_RPC_IDENTITY_ADVERTISED_ADDRESS_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hawser::rpc {

// The address by which peers reach a worker that its transport says serves at
// `serving`: `advertised`, of which a port 0 is replaced by the one it serves
// on; `serving` if that is empty.
//
// kInvalidArgument if `advertised` is no address, or is empty where `serving`
// stands for all addresses of the machine, of which none can be dialled.
absl::StatusOr<std::string> AdvertisedAddress(std::string_view advertised,
                                              std::string_view serving);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_IDENTITY_ADVERTISED_ADDRESS_H_

#ifndef HAWSER_LAUNCH_NETWORK_INTERFACE_H_
#define HAWSER_LAUNCH_NETWORK_INTERFACE_H_

#include <string>

#include "absl/status/statusor.h"

namespace hawser::launch {

// The address of a network interface of this machine, such as "eth0": its first
// IPv4 address, or else its first IPv6 address that other machines can reach.
//
//   kNotFound            the interface does not exist; the error lists the
//                        existing ones.
//   kFailedPrecondition  the interface lacks such an address.
absl::StatusOr<std::string> AddressOfInterface(const std::string& name);

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_NETWORK_INTERFACE_H_

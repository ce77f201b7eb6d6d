#ifndef HAWSER_LAUNCH_RUN_PORT_RESERVATION_H_
#define HAWSER_LAUNCH_RUN_PORT_RESERVATION_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "fs/unique_fd.h"

namespace hawser::launch {

// A TCP port of this machine that the system gives to no other process as a
// free one, until the object is destroyed. The socket does not listen and has
// SO_REUSEADDR, so a server that sets it too, as servers do, can listen at the
// port.
class PortReservation {
 public:
  // Port 0 selects a free one. If `host` is no address of this machine, as
  // behind NAT, the port is reserved on all addresses.
  //
  //   kAlreadyExists     another process listens at the port; says what to do.
  //   kInvalidArgument   the host is unknown.
  //   kPermissionDenied  the port needs privileges.
  static absl::StatusOr<PortReservation> Take(const std::string& host,
                                              int port);

  int port() const { return port_; }

 private:
  PortReservation(fs::UniqueFd socket, int port)
      : socket_(std::move(socket)), port_(port) {}

  fs::UniqueFd socket_;
  int port_;
};

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_RUN_PORT_RESERVATION_H_

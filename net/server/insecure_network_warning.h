// Repeated warning that a server is open to a network.

#ifndef HAWSER_NET_SERVER_INSECURE_NETWORK_WARNING_H_
#define HAWSER_NET_SERVER_INSECURE_NETWORK_WARNING_H_

#include <memory>
#include <string>

#include "async/clock.h"

namespace hawser::net {

// Logs a warning on construction and every minute during its lifetime.
class InsecureNetworkWarning {
 public:
  // `address` is the server's listening address.
  explicit InsecureNetworkWarning(std::string address,
                                  std::unique_ptr<async::Clock> clock =
                                      std::make_unique<async::RealClock>());
  InsecureNetworkWarning(const InsecureNetworkWarning&) = delete;
  InsecureNetworkWarning& operator=(const InsecureNetworkWarning&) = delete;

 private:
  void WarnFromNowOn();

  const std::string address_;
  // Destroyed first; waits for a line being written.
  const std::unique_ptr<async::Clock> clock_;
};

}  // namespace hawser::net

#endif  // HAWSER_NET_SERVER_INSECURE_NETWORK_WARNING_H_

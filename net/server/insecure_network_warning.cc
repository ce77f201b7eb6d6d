#include "net/server/insecure_network_warning.h"

#include <cstdio>
#include <utility>

#include "absl/time/time.h"

namespace hawser::net {

InsecureNetworkWarning::InsecureNetworkWarning(
    std::string address, std::unique_ptr<async::Clock> clock)
    : address_(std::move(address)), clock_(std::move(clock)) {
  WarnFromNowOn();
}

void InsecureNetworkWarning::WarnFromNowOn() {
  std::fprintf(
      stderr,
      "hawser: WARNING: %s is open to the network without TLS "
      "(allow_insecure_network): everyone who can connect can use it\n",
      address_.c_str());
  clock_->CallAfter(absl::Minutes(1), [this] { WarnFromNowOn(); });
}

}  // namespace hawser::net

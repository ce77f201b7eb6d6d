#include "net/server/insecure_network_warning.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "telemetry/log.h"

namespace hawser::net {

InsecureNetworkWarning::InsecureNetworkWarning(
    std::string address, std::unique_ptr<async::Clock> clock)
    : address_(std::move(address)), clock_(std::move(clock)) {
  WarnFromNowOn();
}

void InsecureNetworkWarning::WarnFromNowOn() {
  telemetry::Log(
      telemetry::LogSeverity::kWarning,
      absl::StrCat(address_,
                   " is open to the network without TLS "
                   "(allow_insecure_network): everyone who can connect can "
                   "use it"));
  clock_->CallAfter(absl::Minutes(1), [this] { WarnFromNowOn(); });
}

}  // namespace hawser::net

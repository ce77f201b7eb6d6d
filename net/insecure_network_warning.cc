#include "net/insecure_network_warning.h"

#include <chrono>
#include <cstdio>
#include <utility>

namespace hawser::net {
namespace {

constexpr std::chrono::minutes kInterval(1);

void Warn(const std::string& address) {
  std::fprintf(stderr,
               "hawser: WARNING: %s is open to the network without TLS "
               "(allow_insecure_network): anybody who reaches it can use it\n",
               address.c_str());
}

}  // namespace

InsecureNetworkWarning::InsecureNetworkWarning(std::string address)
    : address_(std::move(address)) {
  Warn(address_);
  thread_ = std::thread([this] { Run(); });
}

InsecureNetworkWarning::~InsecureNetworkWarning() {
  {
    async::MutexLock lock(&mutex_);
    stopped_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void InsecureNetworkWarning::Run() {
  async::MutexLock lock(&mutex_);
  auto next = std::chrono::steady_clock::now() + kInterval;
  while (!stopped_) {
    if (changed_.WaitUntil(&mutex_, next)) continue;
    Warn(address_);
    next += kInterval;
  }
}

}  // namespace hawser::net

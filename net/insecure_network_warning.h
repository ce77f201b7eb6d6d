// Keeps saying that a server is open to a network.

#ifndef HAWSER_NET_INSECURE_NETWORK_WARNING_H_
#define HAWSER_NET_INSECURE_NETWORK_WARNING_H_

#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "async/mutex.h"

namespace hawser::net {

// Writes one line to stderr now and each minute, while it lives.
class InsecureNetworkWarning {
 public:
  // `address` is where the server listens.
  explicit InsecureNetworkWarning(std::string address);
  ~InsecureNetworkWarning();

 private:
  void Run();

  const std::string address_;
  async::Mutex mutex_;
  async::CondVar changed_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace hawser::net

#endif  // HAWSER_NET_INSECURE_NETWORK_WARNING_H_

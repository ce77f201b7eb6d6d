// Probes of whether a machine accepts connections at an address.

#ifndef HAWSER_NET_TCP_PROBER_H_
#define HAWSER_NET_TCP_PROBER_H_

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/mutex.h"

namespace hawser::net {

// Connects and closes the connection again. The system accepts connections in
// place of a process that is stopped or gets no processor time, so a probe
// tells a busy peer from one that has died or cannot be reached.
//
// Thread-safe.
class TcpProber {
 public:
  // Runs on the prober's thread, which it must not block.
  using Done = absl::AnyInvocable<void(absl::Status) &&>;

  TcpProber();
  // Calls Stop.
  ~TcpProber();
  TcpProber(const TcpProber&) = delete;
  TcpProber& operator=(const TcpProber&) = delete;

  // `address` is "host:port", "[v6]:port" or "unix:/path". The first probe
  // starts the thread. Passes to `done`:
  //   OK                 a connection was accepted.
  //   kUnavailable       each IP address of the host refused it, or cannot be
  //                      reached.
  //   kDeadlineExceeded  one did not reply within `timeout`.
  void Probe(std::string address, absl::Duration timeout, Done done);

  // Waits for a running callback, and drops those of probes in progress and of
  // later ones. Must not be called from a callback. Idempotent.
  void Stop();

 private:
  class Attempt;

  void Run();

  // An eventfd that ends a poll.
  const int wake_;
  async::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<Attempt>> added_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::net

#endif  // HAWSER_NET_TCP_PROBER_H_

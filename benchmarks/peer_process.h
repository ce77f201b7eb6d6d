#ifndef HAWSER_BENCHMARKS_PEER_PROCESS_H_
#define HAWSER_BENCHMARKS_PEER_PROCESS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmarks/child_process.h"

namespace hawser::benchmarks {

// A peer that is measured in the same run: a child process that replies to each
// request line with one line, so that its turns and ours alternate.
//
// Not thread-safe. The destructor kills the child and the processes that it
// started.
class PeerProcess {
 public:
  // State of the peer, and of the processes that it started, between requests.
  enum class WhenIdle {
    kRuns,
    // Stopped by SIGSTOP, so that a peer that polls does not use the processor
    // during the turn of the other side.
    kStopped,
  };

  // Starts `command`, which begins with the path of the executable, and waits
  // for its first line: "ready", followed by a description of the peer. That
  // must arrive within ten minutes.
  // `advice` names the packages to install and is part of every error.
  static absl::StatusOr<std::unique_ptr<PeerProcess>> Start(
      const std::vector<std::string>& command, const std::string& advice,
      WhenIdle when_idle = WhenIdle::kRuns);

  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  // The peer's description of itself, such as its version.
  const std::string& description() const { return description_; }

  // Sends `request` and returns the reply, without their newlines.
  //
  //   kUnavailable       the peer has ended.
  //   kDeadlineExceeded  it did not reply within ten minutes.
  absl::StatusOr<std::string> Ask(const std::string& request);

  // The same, for a reply that is a positive number, such as a time.
  //
  //   kInternal  the reply is not a positive number.
  absl::StatusOr<double> AskNumber(const std::string& request);

 private:
  PeerProcess(std::unique_ptr<ChildProcess> child, std::string advice,
              WhenIdle when_idle);
  absl::Status WithAdvice(const absl::Status& status) const;
  // Sends `signal` to the child's process group if it is stopped when idle.
  void SignalIfStopped(int signal) const;

  const std::unique_ptr<ChildProcess> child_;
  const std::string advice_;
  const WhenIdle when_idle_;
  std::string description_;
};

}  // namespace hawser::benchmarks

#endif  // HAWSER_BENCHMARKS_PEER_PROCESS_H_

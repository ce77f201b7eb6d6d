#ifndef HAWSER_BENCHMARKS_PEER_PROCESS_H_
#define HAWSER_BENCHMARKS_PEER_PROCESS_H_

#include <sys/types.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hawser::benchmarks {

// A peer that is measured in the same run: a child process that answers each
// request line with one reply line, so that its turns and ours interleave.
//
// Not thread-safe. The child, and what it started, is killed with this object;
// the child by the kernel if this process dies.
class PeerProcess {
 public:
  // What the peer, and what it started, does between requests.
  enum class WhenIdle {
    kRuns,
    // Is stopped: one that waits busily would take the processor from whoever
    // has the turn.
    kStopped,
  };

  // Starts `command` (the first element is the path of the executable) and
  // waits for its first line, which must begin with "ready"; what follows it
  // describes the peer. `advice` tells what to install and is part of every
  // error, since a missing peer must not pass for a measured one.
  static absl::StatusOr<std::unique_ptr<PeerProcess>> Start(
      const std::vector<std::string>& command, const std::string& advice,
      WhenIdle when_idle = WhenIdle::kRuns);

  ~PeerProcess();
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  // What the peer said of itself, such as its version.
  const std::string& description() const { return description_; }

  // Sends `request` and returns the reply, without their newlines.
  absl::StatusOr<std::string> Ask(const std::string& request);

  // The same, for a reply that is a positive number, such as a time.
  //
  //   kInternal  it is none.
  absl::StatusOr<double> AskNumber(const std::string& request);

 private:
  PeerProcess(pid_t pid, std::FILE* to, std::FILE* from, std::string advice,
              WhenIdle when_idle);
  absl::StatusOr<std::string> ReadLine();
  // To the child's process group, if it does not run when idle.
  void SignalIfStopped(int signal) const;

  // Also that of its process group.
  const pid_t pid_;
  std::FILE* const to_;
  std::FILE* const from_;
  const std::string advice_;
  const WhenIdle when_idle_;
  std::string description_;
};

}  // namespace hawser::benchmarks

#endif  // HAWSER_BENCHMARKS_PEER_PROCESS_H_

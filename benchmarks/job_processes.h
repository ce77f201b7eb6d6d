#ifndef HAWSER_BENCHMARKS_JOB_PROCESSES_H_
#define HAWSER_BENCHMARKS_JOB_PROCESSES_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "benchmarks/child_process.h"

namespace hawser::benchmarks {

// The worker processes of one job on this machine, of which rank 0 serves the
// store. Each runs RunJobWorker of this program (benchmarks/job_worker.h).
//
// Not thread-safe. The destructor kills the processes. They also end with this
// process.
class JobProcesses {
 public:
  // Starts the processes. They have not joined the job when this returns.
  static absl::StatusOr<std::unique_ptr<JobProcesses>> Start(int num_workers);

  int num_workers() const { return static_cast<int>(processes_.size()); }
  pid_t pid(int rank) const { return Process(rank).pid(); }

  // The ranks from `first` on.
  std::vector<int> RanksFrom(int first) const;

  // Sends `request` to `ranks`, and returns.
  absl::Status Send(const std::vector<int>& ranks, const std::string& request);
  // Waits up to `timeout` for the replies of all of `ranks`, also if one of
  // them is an error, and returns their numbers. The error names the request,
  // the first rank that failed, and the number of those that did:
  //
  //   kInternal          a worker replied with an error.
  //   kUnavailable       a process has ended.
  //   kDeadlineExceeded  a worker did not reply in time.
  absl::StatusOr<std::vector<int64_t>> Receive(const std::vector<int>& ranks,
                                               absl::Duration timeout);
  // OK if none of `ranks` has replied to `request` yet. Otherwise kInternal, or
  // kUnavailable, with the reply of the first one that has.
  absl::Status CheckPending(const std::vector<int>& ranks,
                            const std::string& request);
  // Send, then Receive.
  absl::StatusOr<std::vector<int64_t>> Ask(const std::vector<int>& ranks,
                                           const std::string& request,
                                           absl::Duration timeout);

 private:
  JobProcesses() = default;
  ChildProcess& Process(int rank) const {
    return *processes_[static_cast<size_t>(rank)];
  }

  // By rank.
  std::vector<std::unique_ptr<ChildProcess>> processes_;
  // Sent last, for errors.
  std::string request_;
};

}  // namespace hawser::benchmarks

#endif  // HAWSER_BENCHMARKS_JOB_PROCESSES_H_

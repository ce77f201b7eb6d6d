// A job of processes under load, whose processes are killed and restarted.

#ifndef HAWSER_TESTS_SOAK_SOAK_JOB_H_
#define HAWSER_TESTS_SOAK_SOAK_JOB_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/faults/delays.h"
#include "tests/faults/reporting_process.h"

namespace hawser::tests {

// Eight processes: "host", which serves the store, three servers, and four
// trainers (load.h). Every failed expectation fails the test. Not thread-safe.
class SoakJob {
 public:
  struct Options {
    uint64_t seed = 1;
    // Time from one step of a trainer to the next.
    absl::Duration step_interval = absl::Milliseconds(20);
    // Time added to each documented limit: the machine may be busy.
    absl::Duration slack = absl::ZeroDuration();
  };
  using Census = std::map<std::string, int64_t>;

  explicit SoakJob(const Options& options) : options_(options) {}

  // Starts all processes; false, with a failure, if one does not join.
  bool Start();
  // All leave the job and end with exit code 0.
  void Leave();

  // All except the host.
  std::vector<std::string> names() const;

  // Kills the processes at once. Expects that a killed process leaves no file
  // behind, and that each other one is told of each loss by name within 3.5 s.
  // Starts them again, and expects that all trainers go on.
  void KillAndRestart(const std::vector<std::string>& victims);
  // Stops a process, and expects that the others are told of its loss within
  // 12 s; then continues it, expects that it ends as fenced, and starts it
  // again.
  void StopAndRestart(const std::string& victim);
  // Kills the process with the store, and expects that calls of each other
  // process to it fail within 3.5 s, naming it. Ends the job, which cannot go
  // on, and starts it anew.
  void KillHostAndRestart();

  // Reads reports for that long.
  void RunFor(absl::Duration time);
  // Ends the load in all processes; they then hold nothing.
  void Pause();
  void Resume();
  // The counters of each process, by its name. Waits until all processes
  // satisfy `condition`, which reports its first violation as text; fails the
  // test after a minute.
  std::map<std::string, Census> AwaitCensus(
      const std::function<std::string(const Census& census)>& condition);

  // Steps of all trainers, of all incarnations.
  int64_t num_steps() const { return num_steps_; }
  int64_t num_failed_steps() const { return num_failed_steps_; }
  // The error of the last one that failed.
  const std::string& last_failure() const { return last_failure_; }
  // Times from a signal until a process was told of its effect.
  Delays& told() { return told_; }

 private:
  struct Member {
    std::string name;
    int rank = 0;
    std::unique_ptr<ReportingProcess> process;
    std::string incarnation;
    // Times at which it was told that an incarnation is lost.
    std::map<std::string, int64_t> losses;
    std::optional<int64_t> host_unreachable;
    std::optional<Census> census;
    bool fenced = false;
    // The last report.
    int64_t steps = 0;
    int64_t failed_steps = 0;
  };

  bool StartMember(Member& member);
  Member& Find(const std::string& name);
  bool IsTrainer(const Member& member) const;
  void Handle(Member& member, const std::string& line);
  // Reads reports until `done` returns true; false after `limit`.
  bool RunUntil(const std::function<bool()>& done, absl::Duration limit);
  // Waits for the exit code, and reads reports meanwhile: a process waits while
  // nobody reads them. -1 after `limit`.
  int AwaitEnd(Member& member, absl::Duration limit);
  void ExpectTold(const std::vector<std::string>& victims,
                  const std::vector<std::string>& incarnations, int64_t since,
                  absl::Duration limit);
  void Restart(const std::vector<std::string>& victims);
  // Waits until each trainer has made steps since the call.
  void ExpectProgress();
  void SendAll(const std::string& command);

  const Options options_;
  uint64_t num_starts_ = 0;
  std::string master_;
  std::vector<std::unique_ptr<Member>> members_;
  // Incarnations that were killed or stopped, so that their loss is expected.
  std::map<std::string, std::string> victims_;
  int64_t num_steps_ = 0;
  int64_t num_failed_steps_ = 0;
  std::string last_failure_;
  Delays told_;
};

}  // namespace hawser::tests

#endif  // HAWSER_TESTS_SOAK_SOAK_JOB_H_

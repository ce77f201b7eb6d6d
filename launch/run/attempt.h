#ifndef HAWSER_LAUNCH_RUN_ATTEMPT_H_
#define HAWSER_LAUNCH_RUN_ATTEMPT_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/mutex.h"
#include "launch/run/job_failure.h"
#include "launch/run/session.h"
#include "store/endpoint.h"

namespace hawser::launch {

// The end of an attempt.
struct AttemptOutcome {
  // nullopt: all processes of all nodes have succeeded.
  std::optional<JobFailure> failure = {};
};

// One attempt to run a job, as the launcher of a node takes part in it. All
// nodes see the same outcome, which the first node that reports a failure
// decides, or the last one that reports success. Keys begin with the session
// and the number of the attempt, so that attempts do not see each other.
//
// A thread of the object waits for the outcome and checks the leases of the
// other nodes: if one has vanished, that is the outcome. Thread-safe.
class Attempt {
 public:
  // `on_outcome` runs once, in any thread, when the outcome is known. `session`
  // must outlive the attempt.
  Attempt(Session* session, int number, std::function<void()> on_outcome);
  // Stops waiting for the outcome.
  ~Attempt();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  // On node 0: tells the others the address at which processes find rank 0.
  absl::Status SetMaster(const store::Endpoint& master);
  // On the others: waits for it. kAborted if the outcome is known before;
  // otherwise the errors of Session::Await.
  absl::StatusOr<store::Endpoint> GetMaster();

  // Reports the end of this node's processes; call one of the two once. If the
  // store does not reply, the failure, or that one, is the outcome here.
  void ReportFailure(const JobFailure& failure);
  void ReportSuccess();

  // nullopt: not known yet.
  std::optional<AttemptOutcome> outcome() const;

  // After a failure: returns when the processes of all nodes have ended, which
  // this call reports for its node. kUnavailable names a node that has
  // vanished; kDeadlineExceeded after `timeout`.
  absl::Status AwaitAllStopped(absl::Duration timeout);

 private:
  std::string Key(const std::string& name) const;
  // The keys "<name>/<node>" of all nodes.
  std::vector<std::string> KeysOfNodes(const std::string& name) const;
  // Decides the outcome unless another node has, and takes it over.
  void Decide(const std::string& text, const AttemptOutcome& outcome,
              absl::Duration timeout);
  void Take(const std::string& text);
  void Take(AttemptOutcome outcome);
  void Run();
  // Waits once for the outcome; false when the thread shall end.
  bool Watch();

  Session* const session_;
  const int number_;
  const std::function<void()> on_outcome_;

  mutable async::Mutex mutex_;
  std::optional<AttemptOutcome> outcome_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  // The watch of the thread.
  async::Future<std::vector<std::string>> change_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;
};

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_RUN_ATTEMPT_H_

// Process groups of workers.

#ifndef HAWSER_COLLECTIVES_AGENT_GROUP_SERVICE_H_
#define HAWSER_COLLECTIVES_AGENT_GROUP_SERVICE_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/mutex.h"
#include "collectives/make_group.h"
#include "collectives/process_group.h"
#include "rpc/agent/service.h"
#include "rpc/agent/service_host.h"
#include "rpc/identity/worker_info.h"

namespace hawser::collectives {

// Makes process groups of the workers of a job. When the job has lost a worker,
// the groups that it belongs to end with kUnavailable, which names it, on every
// rank whose worker learns of it; the others learn it from these. A worker that
// hangs is thus noticed as the job notices it, and not only at the timeout of
// an operation.
//
// Thread-safe.
class GroupService final : public rpc::Service {
 public:
  // Rank i of the group is the worker `workers[i]`; this worker is one of them.
  // All of them call it with the same workers and name. `options` are used
  // except for rank and size.
  //
  //   kInvalidArgument     this worker is not one of `workers`, or one of them
  //                        is named twice.
  //   kFailedPrecondition  the service was not given to an agent, or that has
  //                        been shut down.
  //   kUnavailable         a worker has been lost since it began.
  // Other errors are those of MakeProcessGroup. Blocks; must return before the
  // agent is shut down.
  absl::StatusOr<std::shared_ptr<ProcessGroup>> MakeGroup(
      const std::vector<std::string>& workers, MakeGroupOptions options = {});

  std::string_view name() const override { return "collectives"; }
  absl::Status Start(rpc::ServiceHost& host) override;
  void OnWorkerLost(const rpc::WorkerInfo& worker,
                    const absl::Status& status) override;
  void Interrupt() override;
  void Stop() override;

 private:
  struct Member {
    std::vector<std::string> workers;
    std::weak_ptr<ProcessGroup> group;
  };

  // Ends the groups that `belongs(member)` holds for.
  template <class Belongs>
  void Abort(const Belongs& belongs, const absl::Status& status);

  async::Mutex mutex_;
  rpc::ServiceHost* host_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::vector<Member> members_ ABSL_GUARDED_BY(mutex_);
  // Names of the workers that were lost, in that order, for groups that are
  // being made.
  std::vector<std::string> lost_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_AGENT_GROUP_SERVICE_H_

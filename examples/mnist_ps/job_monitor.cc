#include "examples/mnist_ps/job_monitor.h"

#include "absl/strings/str_cat.h"
#include "rpc/identity/worker_info.h"

namespace hawser::examples::mnist_ps {

void JobMonitor::OnWorkerLost(const rpc::WorkerInfo& worker,
                              const absl::Status& status) {
  End(absl::UnavailableError(
      absl::StrCat("lost worker ", worker.name, ": ", status.message())));
}

absl::Status JobMonitor::Check() const {
  return ended_.ready() ? ended_.result() : absl::OkStatus();
}

}  // namespace hawser::examples::mnist_ps

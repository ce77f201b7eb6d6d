#include "launch/job/job_monitor.h"

#include <functional>
#include <list>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/mutex.h"
#include "rpc/identity/worker_info.h"

namespace hawser::launch {

void JobMonitor::OnWorkerLost(const rpc::WorkerInfo& worker,
                              const absl::Status& status) {
  End(absl::UnavailableError(
      absl::StrCat("lost worker ", worker.name, ": ", status.message())));
}

void JobMonitor::End(const absl::Status& status) {
  if (!end_.Set(status)) return;
  std::list<std::function<void()>> cancellations;
  {
    const async::MutexLock lock(&mutex_);
    cancellations = cancellations_;
  }
  // Without the lock, since these run callbacks.
  for (const std::function<void()>& cancel : cancellations) cancel();
}

JobMonitor::Waiting::Waiting(JobMonitor& monitor, std::function<void()> cancel)
    : monitor_(monitor) {
  {
    const async::MutexLock lock(&monitor_.mutex_);
    place_ = monitor_.cancellations_.insert(monitor_.cancellations_.end(),
                                            std::move(cancel));
  }
  // Else a later end finds it in the list.
  if (monitor_.ended_.ready()) (*place_)();
}

JobMonitor::Waiting::~Waiting() {
  const async::MutexLock lock(&monitor_.mutex_);
  monitor_.cancellations_.erase(place_);
}

absl::Status JobMonitor::Check() const {
  return ended_.ready() ? ended_.result() : absl::OkStatus();
}

}  // namespace hawser::launch

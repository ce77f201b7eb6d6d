#include "launch/run/node_lease.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"

namespace hawser::launch {

absl::StatusOr<std::unique_ptr<NodeLease>> NodeLease::Start(
    store::Store* store, std::string key, absl::Duration lifetime) {
  std::unique_ptr<NodeLease> lease(
      new NodeLease(store, std::move(key), lifetime));
  RETURN_IF_ERROR(lease->Renew());
  lease->thread_ = std::thread([raw = lease.get()] { raw->Run(); });
  return lease;
}

NodeLease::NodeLease(store::Store* store, std::string key,
                     absl::Duration lifetime)
    : store_(store), key_(std::move(key)), lifetime_(lifetime) {}

NodeLease::~NodeLease() {
  stopped_.Notify();
  if (thread_.joinable()) thread_.join();
}

absl::Status NodeLease::Renew() {
  const auto start = std::chrono::steady_clock::now();
  absl::Status status =
      store_->SetLease(key_, "running", lifetime_, lifetime_ / 3);
  async::MutexLock lock(&mutex_);
  // The store counts from a moment after `start`.
  if (status.ok()) renewed_at_ = start;
  last_error_ = status;
  return status;
}

void NodeLease::Run() {
  while (!stopped_.WaitForNotificationWithTimeout(lifetime_ / 3)) {
    // status() has the error if it lasts.
    Renew().IgnoreError();
  }
}

absl::Status NodeLease::status() const {
  async::MutexLock lock(&mutex_);
  if (last_error_.ok() || std::chrono::steady_clock::now() - renewed_at_ <
                              absl::ToChronoNanoseconds(lifetime_)) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat(
      "the store of the launchers does not reply: ", last_error_.message()));
}

}  // namespace hawser::launch

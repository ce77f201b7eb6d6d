// A LeavingMember for unit tests, over a store in memory.

#ifndef HAWSER_RPC_TESTING_FAKES_FAKE_LEAVING_MEMBER_H_
#define HAWSER_RPC_TESTING_FAKES_FAKE_LEAVING_MEMBER_H_

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "rpc/agent/leave/leaving_member.h"
#include "rpc/identity/worker_info.h"
#include "rpc/membership/worker_directory.h"
#include "store/barrier.h"
#include "store/store.h"

namespace hawser::rpc {

// Meets the other members at barriers in the store. The rest of the job is as
// the test says. Records its steps in `events`. For one thread.
class FakeLeavingMember final : public LeavingMember {
 public:
  struct Options {
    // All members, this worker included.
    std::vector<WorkerInfo> workers;
    // Both must outlive the member.
    store::Store* store = nullptr;
    std::vector<std::string>* events = nullptr;
  };

  explicit FakeLeavingMember(Options options)
      : options_(std::move(options)), records_(options_.store, "job") {}

  // WhenPeerLost completes with `status`.
  void LosePeer(absl::Status status) { lost_.Set(std::move(status)); }
  // WhenAlone is complete at once, unless a future is set here.
  void SetAlone(async::Future<void> alone) { alone_ = std::move(alone); }
  // Withdraw returns `status`.
  void SetWithdraw(absl::Status status) { withdraw_ = std::move(status); }
  // NotifyPeers is complete at once, unless a future is set here.
  void SetNotify(async::Future<void> answers) { answers_ = std::move(answers); }
  // Runs at each step, once it is recorded.
  void SetOnStep(std::function<void(std::string_view step)> on_step) {
    on_step_ = std::move(on_step);
  }

  // The deadline passed to NotifyPeers.
  async::MonotonicTime notify_deadline;

  std::vector<WorkerInfo> Members() const override { return options_.workers; }
  async::Future<void> WhenPeerLost() override { return lost_.future(); }
  async::Future<void> WhenAlone() override {
    Record("await others");
    return alone_;
  }
  // Asks the store.
  bool StoreReachable() const override {
    return options_.store->NumKeys(absl::ZeroDuration()).ok();
  }
  store::Barrier BarrierOf(std::string_view name,
                           Incarnation coordinator) const override {
    return records_.BarrierOf(name, coordinator);
  }
  absl::Status Withdraw() override {
    Record("withdraw");
    return withdraw_;
  }
  void StopMonitoring() override { Record("stop monitoring"); }
  void StopReporting() override { Record("stop reporting"); }
  void StopMembership() override { Record("stop membership"); }
  async::Future<void> NotifyPeers(async::MonotonicTime deadline) override {
    Record("notify");
    notify_deadline = deadline;
    return answers_;
  }

 private:
  void Record(std::string_view step) {
    options_.events->emplace_back(step);
    if (on_step_ != nullptr) on_step_(step);
  }

  const Options options_;
  const WorkerDirectory records_;
  async::Promise<void> lost_;
  async::Future<void> alone_ = async::MakeReadyFuture<void>(absl::OkStatus());
  absl::Status withdraw_;
  async::Future<void> answers_ = async::MakeReadyFuture<void>(absl::OkStatus());
  std::function<void(std::string_view)> on_step_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TESTING_FAKES_FAKE_LEAVING_MEMBER_H_

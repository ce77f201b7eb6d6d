// The watches of one worker of a simulation on the shared store.

#ifndef HAWSER_RPC_TESTING_FAKES_SIMULATED_WATCHES_H_
#define HAWSER_RPC_TESTING_FAKES_SIMULATED_WATCHES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "async/mutex.h"
#include "store/store.h"

namespace hawser::rpc {

// Forwards watches to a store. While partitioned, none of them completes; they
// are made again once the partition has healed. Futures complete in the thread
// of the change or of SetPartitioned. Held by a shared_ptr. Thread-safe.
class SimulatedWatches : public std::enable_shared_from_this<SimulatedWatches> {
 public:
  using Values = std::vector<std::string>;

  // `target` must live until Stop.
  explicit SimulatedWatches(store::Store* target) : target_(*target) {}

  async::Future<Values> Start(std::vector<store::WatchedKey> keys);
  void SetPartitioned(bool partitioned);
  // Ends all watches with kCancelled. Later ones end at once.
  void Stop();

 private:
  struct Watch {
    std::vector<store::WatchedKey> keys;
    async::Promise<Values> promise;
    async::Mutex mutex;
    // At the target; invalid while the watch is held back.
    async::Future<Values> forwarded ABSL_GUARDED_BY(mutex);
  };

  // Makes the watch at the target unless the link is partitioned.
  void Forward(const std::shared_ptr<Watch>& watch);
  // Passes the result on unless the link is partitioned.
  void Complete(const std::shared_ptr<Watch>& watch,
                const absl::StatusOr<Values>& values);
  // Returns true if the watch has to wait for the partition to heal.
  bool HoldBack(const std::shared_ptr<Watch>& watch);

  store::Store& target_;

  async::Mutex mutex_;
  bool partitioned_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  // Those that wait for the partition to heal.
  std::vector<std::shared_ptr<Watch>> held_back_ ABSL_GUARDED_BY(mutex_);
  // All that were started; some may have ended.
  std::vector<std::weak_ptr<Watch>> started_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TESTING_FAKES_SIMULATED_WATCHES_H_

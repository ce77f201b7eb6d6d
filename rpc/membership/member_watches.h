// Registry of membership watches.

#ifndef HAWSER_RPC_MEMBERSHIP_MEMBER_WATCHES_H_
#define HAWSER_RPC_MEMBERSHIP_MEMBER_WATCHES_H_

#include <memory>

#include "async/executor.h"
#include "rpc/membership/member_event.h"

namespace hawser::rpc {

// Delivers to each watch first the current members and then every event, in
// order, on one serial queue. Thread-safe.
class MemberWatches {
 public:
  // `executor` must outlive this object.
  explicit MemberWatches(async::Executor* executor);
  // Calls Stop.
  ~MemberWatches();
  MemberWatches(const MemberWatches&) = delete;
  MemberWatches& operator=(const MemberWatches&) = delete;

  // The callback runs without holding a lock.
  MemberWatch Add(MemberCallback callback);
  // After it returns, the callback is not running and will not run. Must not be
  // called from the callback.
  void Remove(MemberWatch watch);

  // Must be called in the order of the log. Departures of workers that did not
  // join are not delivered.
  void OnEvent(const MemberEvent& event);

  // As Remove for all watches; later watches never run.
  void Stop();

 private:
  class State;
  const std::shared_ptr<State> state_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_MEMBERSHIP_MEMBER_WATCHES_H_

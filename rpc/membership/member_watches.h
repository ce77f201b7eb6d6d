// Registered watches of the membership.

#ifndef HAWSER_RPC_MEMBERSHIP_MEMBER_WATCHES_H_
#define HAWSER_RPC_MEMBERSHIP_MEMBER_WATCHES_H_

#include <memory>

#include "async/executor.h"
#include "rpc/membership/member_event.h"

namespace hawser::rpc {

// Gives each watch first the members there are, and then every event, in
// order, on one serial queue. Thread-safe.
class MemberWatches {
 public:
  // `executor` outlives this.
  explicit MemberWatches(async::Executor* executor);
  // Does Stop.
  ~MemberWatches();
  MemberWatches(const MemberWatches&) = delete;
  MemberWatches& operator=(const MemberWatches&) = delete;

  // The callback runs under no lock.
  MemberWatch Add(MemberCallback callback);
  // It is not running and will not run after it; so not from it.
  void Remove(MemberWatch watch);

  // In the order of the log. Departures of those that did not join are not
  // told.
  void OnEvent(const MemberEvent& event);

  // As Remove for all; later ones never run.
  void Stop();

 private:
  class State;
  const std::shared_ptr<State> state_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_MEMBERSHIP_MEMBER_WATCHES_H_

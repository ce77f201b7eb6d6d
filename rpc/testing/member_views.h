// Membership views reported by the workers of a test.

#ifndef HAWSER_RPC_TESTING_MEMBER_VIEWS_H_
#define HAWSER_RPC_TESTING_MEMBER_VIEWS_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "rpc/identity/worker_info.h"
#include "rpc/membership/member_event.h"
#include "rpc/membership/membership_log.h"

namespace hawser::rpc {

// Collects the events of each worker's WatchMembers, and checks them against G9
// of docs/rpc/guarantees.md. Not thread-safe.
class MemberViews {
 public:
  void Add(Incarnation watcher, const MemberEvent& event);

  // The members as seen by `watcher`.
  const std::set<Incarnation>& MembersOf(Incarnation watcher) {
    return views_[watcher].members;
  }
  // The events of `watcher`, as text.
  std::string Text(Incarnation watcher);

  // Compares each view with the events of `log`. A view must start with the
  // members at the time when its worker joins and continue with the same
  // history, in which each incarnation joins once and departs at most once.
  // Returns the first violation as text, or an empty string.
  std::string Check(MembershipLog& log) const;

 private:
  struct View {
    std::vector<std::string> events;
    std::set<Incarnation> members;
  };

  std::map<Incarnation, View> views_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TESTING_MEMBER_VIEWS_H_

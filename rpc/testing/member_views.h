// Views of the membership that the workers of a test reported.

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

  // Who is there, in the eyes of `watcher`.
  const std::set<Incarnation>& MembersOf(Incarnation watcher) {
    return views_[watcher].members;
  }
  // The events of `watcher`, for people.
  std::string Text(Incarnation watcher);

  // Compares each view with the events of `log`: it begins with the members
  // there are when its worker joins, and goes on with the same history, in
  // which each incarnation joins once and goes at most once. The first
  // violation, in words; empty if there is none.
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

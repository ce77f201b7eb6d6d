#include "rpc/membership/member_view.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "rpc/membership/membership_log.h"

namespace hawser::rpc {

MemberView::MemberView(WorkerInfo self, MemberCallback on_event)
    : self_(std::move(self)), on_event_(std::move(on_event)) {}

std::optional<Incarnation> MemberView::Apply(const v1::MembershipEvent& event) {
  switch (event.change_case()) {
    case v1::MembershipEvent::kJoined: {
      absl::StatusOr<WorkerInfo> worker = FromRecord(event.joined());
      if (!worker.ok() || departed(worker->incarnation)) return std::nullopt;
      if (!members_.emplace(worker->incarnation, *worker).second) {
        return std::nullopt;
      }
      if (worker->incarnation == self_.incarnation) {
        EndPast();
      } else if (!in_past_) {
        on_event_({.kind = MemberEvent::Kind::kJoined, .worker = *worker});
        return worker->incarnation;
      }
      return std::nullopt;
    }
    case v1::MembershipEvent::kLeft:
      Remove(MemberEvent::Kind::kLeft, event.left());
      return std::nullopt;
    case v1::MembershipEvent::kLost:
      Remove(MemberEvent::Kind::kLost, event.lost());
      return std::nullopt;
    case v1::MembershipEvent::CHANGE_NOT_SET:
      return std::nullopt;
  }
  return std::nullopt;
}

// The workers read so far are members from now on.
void MemberView::EndPast() {
  in_past_ = false;
  std::vector<WorkerInfo> members;
  for (const auto& [incarnation, worker] : members_) members.push_back(worker);
  std::sort(members.begin(), members.end(),
            [](const WorkerInfo& a, const WorkerInfo& b) {
              return std::pair(a.id, ToNumber(a.incarnation)) <
                     std::pair(b.id, ToNumber(b.incarnation));
            });
  for (const WorkerInfo& worker : members) {
    on_event_({.kind = MemberEvent::Kind::kJoined, .worker = worker});
  }
}

void MemberView::Remove(MemberEvent::Kind kind,
                        const v1::WorkerDeparture& departure) {
  if (departed(Incarnation{departure.reporter()})) return;
  const Incarnation incarnation{departure.incarnation()};
  if (!departed_.insert(incarnation).second) return;
  // Even if this worker was declared lost before it had joined.
  WorkerInfo worker = self_;
  auto it = members_.find(incarnation);
  if (it != members_.end()) {
    worker = std::move(it->second);
    members_.erase(it);
  } else if (incarnation != self_.incarnation) {
    return;
  }
  on_event_({.kind = kind, .worker = worker, .reason = departure.reason()});
}

}  // namespace hawser::rpc

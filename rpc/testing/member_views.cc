#include "rpc/testing/member_views.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hawser::rpc {
namespace {

// An event as text, and its incarnation.
struct Change {
  Incarnation about{};
  std::string text;

  // The kind of the event, such as "joined".
  std::string kind() const { return text.substr(0, text.find(' ')); }
  std::string who() const { return text.substr(text.find(' ')); }
};

// Returns the events of the store, without ignored ones.
std::vector<Change> HistoryOf(const std::vector<v1::MembershipEvent>& events) {
  std::vector<Change> history;
  std::map<Incarnation, std::string> names;
  std::set<Incarnation> departed;
  for (const v1::MembershipEvent& event : events) {
    if (event.has_joined()) {
      const Incarnation joined{event.joined().incarnation()};
      names[joined] =
          absl::StrCat(event.joined().name(), " ", ToString(joined));
      history.push_back({joined, "joined " + names[joined]});
    } else if (event.has_left() || event.has_lost()) {
      const v1::WorkerDeparture& departure =
          event.has_left() ? event.left() : event.lost();
      const Incarnation goes{departure.incarnation()};
      if (departed.contains(Incarnation{departure.reporter()})) continue;
      if (!departed.insert(goes).second) continue;
      history.push_back(
          {goes, (event.has_left() ? "left " : "lost ") + names[goes]});
    }
  }
  return history;
}

bool IsViewOf(const std::vector<Change>& history, Incarnation watcher,
              const std::vector<std::string>& events) {
  std::set<std::string> members;
  size_t at = 0;
  while (at < history.size()) {
    const Change& change = history[at++];
    if (change.kind() == "joined") {
      members.insert("joined" + change.who());
    } else {
      members.erase("joined" + change.who());
    }
    if (change.about == watcher) break;
  }
  if (events.empty()) return true;
  const size_t past = std::min(members.size(), events.size());
  if (std::set<std::string>(events.begin(), events.begin() + past) != members) {
    return false;
  }
  for (size_t i = past; i < events.size(); ++i) {
    if (at == history.size() || events[i] != history[at++].text) return false;
  }
  return true;
}

}  // namespace

void MemberViews::Add(Incarnation watcher, const MemberEvent& event) {
  const char* kinds[] = {"joined", "left", "lost"};
  View& view = views_[watcher];
  view.events.push_back(absl::StrCat(kinds[static_cast<int>(event.kind)], " ",
                                     event.worker.name, " ",
                                     ToString(event.worker.incarnation)));
  if (event.kind == MemberEvent::Kind::kJoined) {
    view.members.insert(event.worker.incarnation);
  } else {
    view.members.erase(event.worker.incarnation);
  }
}

std::string MemberViews::Text(Incarnation watcher) {
  return absl::StrJoin(views_[watcher].events, ", ");
}

std::string MemberViews::Check(MembershipLog& log) const {
  const auto events = log.ReadAll();
  if (!events.ok()) return events.status().ToString();
  const std::vector<Change> history = HistoryOf(*events);
  for (const auto& [watcher, view] : views_) {
    if (!IsViewOf(history, watcher, view.events)) {
      return absl::StrCat("the view of ", ToString(watcher),
                          " differs: ", absl::StrJoin(view.events, ", "));
    }
  }
  std::set<std::string> seen;
  for (const Change& change : history) {
    const bool joined = change.kind() == "joined";
    if (!seen.insert((joined ? "joined" : "departed") + change.who()).second) {
      return "twice: " + change.text;
    }
    if (!joined && !seen.contains("joined" + change.who())) {
      return "departed before it joined: " + change.text;
    }
  }
  return "";
}

}  // namespace hawser::rpc

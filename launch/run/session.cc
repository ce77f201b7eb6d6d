#include "launch/run/session.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "async/random_source.h"
#include "async/status_macros.h"

namespace hawser::launch {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Calls that wait ask `interrupted` after this time.
constexpr absl::Duration kSlice = absl::Milliseconds(500);

// Begins the answer of node 0 if the nodes do not fit together.
constexpr char kRefused[] = "refused: ";

std::string DrawToken() {
  return absl::StrCat(
      absl::Hex(async::RandomSource::FromEntropy().Next(), absl::kZeroPad16));
}

SteadyClock::time_point After(absl::Duration timeout) {
  return SteadyClock::now() + absl::ToChronoNanoseconds(timeout);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> Session::Join(
    std::shared_ptr<store::Store> store, SessionOptions options) {
  std::unique_ptr<Session> session(
      new Session(std::move(store), std::move(options)));
  RETURN_IF_ERROR(session->node_rank() == 0 ? session->Gather()
                                            : session->Enter());
  return session;
}

Session::Session(std::shared_ptr<store::Store> store, SessionOptions options)
    : store_(std::move(store)),
      options_(std::move(options)),
      token_(DrawToken()),
      id_(options_.node_rank == 0 ? token_ : "") {}

std::string Session::RunKey(const std::string& name) const {
  return absl::StrCat("launch/run/", options_.run_id, "/", name);
}

std::string Session::Key(const std::string& name) const {
  return RunKey(absl::StrCat(id_, "/", name));
}

std::string Session::NameOf(size_t node) const {
  return node < nodes_.size()
             ? absl::StrCat("node ", node, " (", nodes_[node].host, ")")
             : absl::StrCat("node ", node);
}

absl::Status Session::AwaitChange(const std::vector<std::string>& keys,
                                  std::vector<std::string>& known) const {
  if (options_.interrupted()) return absl::CancelledError("interrupted");
  std::vector<store::WatchedKey> watched;
  for (size_t i = 0; i < keys.size(); ++i) {
    watched.push_back({keys[i], known[i]});
  }
  const auto change = store_->WhenChanged(std::move(watched));
  absl::StatusOr<std::vector<std::string>> values = change.WaitFor(kSlice);
  change.Cancel();
  RETURN_IF_ERROR(values.status());
  known = *std::move(values);
  return absl::OkStatus();
}

absl::Status Session::CheckRankIsFree(
    const std::string& session, SteadyClock::time_point known_since) const {
  const std::string id = session.substr(0, session.find('\n'));
  // The lease of a launcher that has ended lives for one lifetime, and its
  // store may be late by another.
  const auto certain =
      known_since + absl::ToChronoNanoseconds(2 * options_.lease_lifetime);
  if (id.empty() || id == id_ || SteadyClock::now() < certain) {
    return absl::OkStatus();
  }
  const std::vector<std::string> lease = {
      RunKey(absl::StrCat(id, "/running/", options_.node_rank))};
  const absl::StatusOr<bool> running = store_->Check(lease, kSlice);
  // A store that is late is asked again.
  if (!running.ok() || !*running) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat(
      "another launcher runs as node ", options_.node_rank,
      " of a job with the --rdzv-id \"", options_.run_id,
      "\": start one launcher for each --node-rank, and give each job another "
      "--rdzv-id"));
}

absl::Status Session::Gather() {
  const auto begin = SteadyClock::now();
  const auto deadline = After(options_.join_timeout);
  const int num_nodes = options_.self.num_nodes;
  RETURN_IF_ERROR(Introduce());
  std::vector<std::string> keys = {RunKey("session")};
  std::string earlier_session;
  ASSIGN_OR_RETURN(const bool has_earlier,
                   store_->Check(keys, options_.lease_lifetime));
  if (has_earlier) {
    ASSIGN_OR_RETURN(earlier_session,
                     store_->Get(keys[0], options_.lease_lifetime));
  }
  for (int i = 1; i < num_nodes; ++i) {
    keys.push_back(RunKey(absl::StrCat("hello/", i)));
    keys.push_back(Key(absl::StrCat("joined/", i)));
  }
  // The session, then token and description of each node.
  std::vector<std::string> values(keys.size());
  std::string session;
  while (true) {
    std::string text = id_;
    std::vector<std::string> missing;
    for (size_t i = 1; i < values.size(); i += 2) {
      absl::StrAppend(&text, "\n", values[i]);
      if (values[i + 1].empty()) missing.push_back(absl::StrCat((i + 1) / 2));
    }
    if (missing.empty() && !session.empty()) break;
    if (text != session) {
      RETURN_IF_ERROR(store_->Set(keys[0], text, options_.lease_lifetime));
      session = values[0] = text;
      if (num_nodes == 1) break;
    }
    absl::Status changed = AwaitChange(keys, values);
    if (!changed.ok() && !absl::IsDeadlineExceeded(changed)) return changed;
    if (values[0] != session) {
      return absl::AlreadyExistsError(
          "another launcher runs as node 0 with the same --rdzv-id: start one "
          "launcher for each --node-rank");
    }
    if (absl::Status free = CheckRankIsFree(earlier_session, begin);
        !free.ok()) {
      // So that launchers with other ranks find it too.
      RETURN_IF_ERROR(
          store_->Set(keys[0], earlier_session, options_.lease_lifetime));
      return free;
    }
    if (SteadyClock::now() >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("node ", absl::StrJoin(missing, ", "), " of ", num_nodes,
                       " has not joined within ",
                       absl::FormatDuration(options_.join_timeout),
                       ": start its launcher with the same --nnodes, --rdzv-id "
                       "and address"));
    }
  }
  std::vector<std::string> texts = {ToText(options_.self)};
  for (size_t i = 2; i < values.size(); i += 2) texts.push_back(values[i]);
  std::string all = absl::StrJoin(texts, "\n");
  absl::Status fit = TakeNodes(all);
  if (!fit.ok()) all = absl::StrCat(kRefused, fit.message());
  RETURN_IF_ERROR(store_->Set(Key("nodes"), all, options_.lease_lifetime));
  // The others read the refusal.
  if (!fit.ok()) Leave(options_.lease_lifetime);
  return fit;
}

absl::Status Session::Enter() {
  const auto begin = SteadyClock::now();
  const auto deadline = After(options_.join_timeout);
  RETURN_IF_ERROR(
      store_->Set(RunKey(absl::StrCat("hello/", options_.node_rank)), token_,
                  options_.lease_lifetime));
  const std::vector<std::string> keys = {RunKey("session")};
  std::vector<std::string> values(1);
  while (true) {
    absl::Status changed = AwaitChange(keys, values);
    if (!changed.ok() && !absl::IsDeadlineExceeded(changed)) return changed;
    const std::vector<std::string> tokens = absl::StrSplit(values[0], '\n');
    const size_t own = static_cast<size_t>(options_.node_rank);
    if (own < tokens.size() && tokens[own] == token_) {
      id_ = tokens[0];
      break;
    }
    RETURN_IF_ERROR(CheckRankIsFree(values[0], begin));
    if (SteadyClock::now() >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          "node 0 has not let node ", options_.node_rank, " join within ",
          absl::FormatDuration(options_.join_timeout),
          ": start its launcher with the same --nnodes, --rdzv-id and "
          "address"));
    }
  }
  RETURN_IF_ERROR(Introduce());
  ASSIGN_OR_RETURN(const std::string nodes,
                   Await(Key("nodes"), options_.join_timeout, "the other nodes",
                         [] { return absl::OkStatus(); }));
  absl::Status fit = TakeNodes(nodes);
  if (!fit.ok()) Leave(options_.lease_lifetime);
  return fit;
}

absl::Status Session::Introduce() {
  // First, so that a node that the others know has a lease.
  ASSIGN_OR_RETURN(
      lease_,
      NodeLease::Start(store_.get(),
                       Key(absl::StrCat("running/", options_.node_rank)),
                       options_.lease_lifetime));
  // The token makes the value unique, so that a retry by this launcher differs
  // from another launcher.
  const std::string claim = Key(absl::StrCat("claim/", options_.node_rank));
  ASSIGN_OR_RETURN(
      const store::CompareAndSetResult claimed,
      store_->CompareAndSet(claim, "", token_, options_.lease_lifetime));
  if (claimed.value != token_) {
    return absl::AlreadyExistsError(
        absl::StrCat("another launcher runs as node ", options_.node_rank,
                     " of this job: start one launcher for each --node-rank"));
  }
  return store_->Set(Key(absl::StrCat("joined/", options_.node_rank)),
                     ToText(options_.self), options_.lease_lifetime);
}

absl::Status Session::TakeNodes(const std::string& text) {
  const std::string refused = kRefused;
  if (text.compare(0, refused.size(), refused) == 0) {
    return absl::InvalidArgumentError(text.substr(refused.size()));
  }
  std::vector<Node> nodes;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ASSIGN_OR_RETURN(Node node, ParseNode(std::string(line)));
    nodes.push_back(std::move(node));
  }
  const Node& first = nodes.front();
  for (size_t i = 1; i < nodes.size(); ++i) {
    const bool same_nodes = nodes[i].num_nodes == first.num_nodes;
    if (same_nodes && nodes[i].max_restarts == first.max_restarts) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        same_nodes ? "--max-restarts" : "--nnodes", " is ",
        same_nodes ? nodes[i].max_restarts : nodes[i].num_nodes, " on node ", i,
        " and ", same_nodes ? first.max_restarts : first.num_nodes,
        " on node 0: it must be the same on all nodes"));
  }
  nodes_ = std::move(nodes);
  return absl::OkStatus();
}

absl::StatusOr<std::string> Session::Await(
    const std::string& key, absl::Duration timeout, const std::string& what,
    const std::function<absl::Status()>& ended) const {
  const auto deadline = After(timeout);
  while (true) {
    if (options_.interrupted()) return absl::CancelledError("interrupted");
    RETURN_IF_ERROR(ended());
    absl::StatusOr<std::string> value = store_->Get(key, kSlice);
    if (value.ok()) return value;
    if (!absl::IsDeadlineExceeded(value.status()) &&
        !absl::IsUnavailable(value.status())) {
      return value;
    }
    if (SteadyClock::now() >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          "waited ", absl::FormatDuration(timeout), " for ", what));
    }
  }
}

absl::Status Session::CheckNodes() const {
  const absl::Status own = lease_->status();
  if (!own.ok()) {
    return absl::UnavailableError(
        node_rank() == 0 ? std::string(own.message())
                         : absl::StrCat(own.message(), "; ", NameOf(0),
                                        ", which may serve it, has vanished"));
  }
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (i == static_cast<size_t>(node_rank())) continue;
    const std::vector<std::string> key = {Key(absl::StrCat("running/", i))};
    const absl::StatusOr<bool> running = store_->Check(key, kSlice);
    if (running.ok() && !*running) {
      return absl::UnavailableError(
          absl::StrCat(NameOf(i),
                       " has vanished: its launcher has given no sign of life "
                       "for ",
                       absl::FormatDuration(options_.lease_lifetime)));
    }
  }
  return absl::OkStatus();
}

void Session::Leave(absl::Duration timeout) {
  // A store that is gone cannot be told.
  if (!lease_->status().ok()) return;
  const auto deadline = After(timeout);
  const auto left = [this](size_t node) {
    return Key(absl::StrCat("left/", node));
  };
  // An error means that the store is gone: node 0 does not wait then.
  store_->Set(left(static_cast<size_t>(node_rank())), "left", timeout)
      .IgnoreError();
  if (node_rank() != 0) return;
  std::vector<std::string> others;
  const size_t num_nodes = static_cast<size_t>(options_.self.num_nodes);
  for (size_t i = 1; i < num_nodes; ++i) others.push_back(left(i));
  while (!others.empty() && SteadyClock::now() < deadline) {
    // A node that has vanished does not write the key.
    if (store_->Wait(others, kSlice).ok() || !CheckNodes().ok()) return;
  }
}

}  // namespace hawser::launch

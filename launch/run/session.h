#ifndef HAWSER_LAUNCH_RUN_SESSION_H_
#define HAWSER_LAUNCH_RUN_SESSION_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "launch/run/node.h"
#include "launch/run/node_lease.h"
#include "store/store.h"

namespace hawser::launch {

struct SessionOptions {
  std::string run_id = "none";
  // This node, and its description.
  int node_rank = 0;
  Node self = {};
  // Longest wait for the other nodes in Join.
  absl::Duration join_timeout = absl::Minutes(10);
  // Time without a sign of life after which a node counts as vanished; also the
  // timeout of single calls of the store.
  absl::Duration lease_lifetime = absl::Seconds(15);
  // Asked at least twice a second by calls that wait, in their thread: true
  // ends them with kCancelled.
  std::function<bool()> interrupted = [] { return false; };
};

// The meeting of the launchers of all nodes of a job, through a store.
//
// Algorithm of Join. All keys begin with the run id.
//   1. Each node but 0 writes a fresh token to "hello/<node>".
//   2. Node 0 draws a session id, and writes it with the tokens to "session";
//      again, whenever a token changes (Gather).
//   3. A node that finds its token there writes its description below the
//      session id, and node 0 answers with those of all nodes (Enter).
// Keys of an earlier job with the same run id are therefore never taken for
// those of this one: their session id is another one, and their tokens are
// those of other launchers. Each step is one read and one write for a node, and
// 2n for node 0.
//
// A launcher with the rank of a node that runs already would wait for ever. So
// each that waits looks whether the one that has its rank in the session which
// "session" names renews its lease. That of a job that has ended is gone after
// `lease_lifetime`.
//
// Thread-safe.
class Session {
 public:
  // Returns when all nodes have joined.
  //
  //   kDeadlineExceeded   names the nodes that have not come in time.
  //   kAlreadyExists      another launcher has the same node rank.
  //   kInvalidArgument    the nodes do not agree on --nnodes or
  //                       --max-restarts.
  //   kCancelled          interrupted.
  //   others              errors of the store.
  static absl::StatusOr<std::unique_ptr<Session>> Join(
      std::shared_ptr<store::Store> store, SessionOptions options);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const std::vector<Node>& nodes() const { return nodes_; }
  int node_rank() const { return options_.node_rank; }
  absl::Duration lease_lifetime() const { return options_.lease_lifetime; }
  store::Store& store() const { return *store_; }
  // A key of this session.
  std::string Key(const std::string& name) const;
  // "node 1 (host)".
  std::string NameOf(size_t node) const;

  // Waits for a key of the session; `what` names it in the error. Returns
  // early, with the result of `ended`, once that is an error.
  absl::StatusOr<std::string> Await(
      const std::string& key, absl::Duration timeout, const std::string& what,
      const std::function<absl::Status()>& ended) const;

  // kUnavailable names a node whose launcher has not renewed its lease, or node
  // 0 if the store does not reply.
  absl::Status CheckNodes() const;

  // Tells the others that this node no longer needs the store. Node 0 waits for
  // the others, as long as they have leases and at most `timeout`.
  void Leave(absl::Duration timeout);

 private:
  Session(std::shared_ptr<store::Store> store, SessionOptions options);

  // Step 2, by node 0. Returns when all others have entered.
  absl::Status Gather();
  // Steps 1 and 3, by the others.
  absl::Status Enter();
  // Writes the description of this node.
  absl::Status Introduce();
  absl::Status TakeNodes(const std::string& text);
  // kAlreadyExists once a launcher of another session has this node's rank,
  // and renews its lease. `session` is a value of the key "session", known
  // since `known_since`.
  absl::Status CheckRankIsFree(
      const std::string& session,
      std::chrono::steady_clock::time_point known_since) const;
  // Waits until one of `keys` differs from its value in `known`, and updates
  // `known`; kDeadlineExceeded after half a second.
  absl::Status AwaitChange(const std::vector<std::string>& keys,
                           std::vector<std::string>& known) const;
  std::string RunKey(const std::string& name) const;

  const std::shared_ptr<store::Store> store_;
  const SessionOptions options_;
  // Drawn by this node; on node 0 also the id of the session.
  const std::string token_;
  std::string id_;
  std::vector<Node> nodes_;
  std::unique_ptr<NodeLease> lease_;
};

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_RUN_SESSION_H_

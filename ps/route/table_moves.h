// Follows the tables of a worker that lost servers hold.

#ifndef HAWSER_PS_ROUTE_TABLE_MOVES_H_
#define HAWSER_PS_ROUTE_TABLE_MOVES_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/mutex.h"
#include "ps/table_route.h"
#include "rpc/agent/host_handle.h"
#include "rpc/agent/service_host.h"

namespace hawser::ps {

// A user of a table. Thread-safe.
class TableFollower {
 public:
  virtual ~TableFollower() = default;

  virtual const std::string& table() const = 0;
  // The version of the table that it uses, and the servers.
  virtual TableRoute route() const = 0;
  // The store records a version above that of route(). Called on the executor
  // of the agent, once for a version.
  virtual void OnTableMoved(const RecordedTable& record) = 0;
};

// Watches the records of the tables of one worker, while a server that they
// name is lost: the table may be restored onto other servers, of which this one
// cannot tell. One watch of the store serves all tables and followers. It ends
// when the lost servers have been started again under their names, which is
// noticed with the replies to requests.
//
// Thread-safe. Lives in a shared_ptr, because closures on the executor hold it.
class TableMoves : public std::enable_shared_from_this<TableMoves> {
 public:
  // Starts a watch: WhenTablesMove of a store.
  using Watch = std::function<async::Future<std::vector<RecordedTable>>(
      std::vector<TableVersion>)>;

  // Time for which replies are taken for no news of servers.
  static constexpr absl::Duration kReplyInterval = absl::Seconds(1);

  TableMoves(rpc::ServiceHost& host, Watch watch);

  // Follows the table of `follower` while that lives.
  void Add(const std::shared_ptr<TableFollower>& follower);
  // A follower has been destroyed.
  void OnRemoved();

  void OnWorkerLost(const std::string& worker);
  // A request to the servers of a table has succeeded. Costs one load if no
  // server is lost.
  void OnReply();

  // Ends the watch, and starts none from now on.
  void Stop();

 private:
  struct Entry {
    std::weak_ptr<TableFollower> follower;
    // Highest version that it was told of.
    int64_t told = 0;
  };

  // Destroyed without the lock: the last of a follower calls OnRemoved.
  using Followers = std::vector<std::shared_ptr<TableFollower>>;

  // Has the executor call Update, once for all calls until then.
  void Schedule();
  // Watches what is to be watched now.
  void Update();
  void ForgetReturned(rpc::ServiceHost& host)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The lowest version that a follower with a lost server knows, by table.
  std::map<std::string, int64_t> VersionsToWatch(Followers& alive)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartWatch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnMoved(const std::vector<RecordedTable>& records);

  rpc::HostHandle host_;
  const Watch start_watch_;
  // Whether there is a watch.
  std::atomic<bool> watching_ = false;
  async::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool scheduled_ ABSL_GUARDED_BY(mutex_) = false;
  async::MonotonicTime next_reply_ ABSL_GUARDED_BY(mutex_);
  // Names of workers.
  std::set<std::string> lost_ ABSL_GUARDED_BY(mutex_);
  std::vector<Entry> followers_ ABSL_GUARDED_BY(mutex_);
  // What `watch_` watches.
  std::map<std::string, int64_t> watched_ ABSL_GUARDED_BY(mutex_);
  async::Future<std::vector<RecordedTable>> watch_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_ROUTE_TABLE_MOVES_H_

// The place of a table, for the handles that use it.

#ifndef HAWSER_PS_ROUTE_TABLE_LOCATION_H_
#define HAWSER_PS_ROUTE_TABLE_LOCATION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/mutex.h"
#include "ps/client/bytes_under_way.h"
#include "ps/client/table_client.h"
#include "ps/route/located_request.h"
#include "ps/route/table_moves.h"
#include "ps/storage/table_spec.h"
#include "ps/table_route.h"
#include "rpc/functions/method.h"

namespace hawser::ps {

// The servers of one version of a table, and their shards. Immutable.
struct TablePlacement {
  TablePlacement(TableRoute of, int64_t num_shards);

  const std::vector<std::string>& servers() const { return route.servers; }

  TableRoute route;
  // The shard after the last one of each server.
  std::vector<int64_t> shard_ends;
};

// Follows a table that is restored onto other servers. Shared by the copies of
// a handle.
//
// Requests carry the version of the placement by which they were cut. A server
// that does not hold this version refuses them. The route is then read from the
// store of the job, and the whole request is cut anew and sent again: parts
// that other servers had applied are gone with the version that they were
// applied to, unless the snapshot has them, whose pushes are recognised.
//
// While a server of the table is lost, the record in the store is watched:
// TableMoves. When it names another version, the requests that wait for the
// restart of the lost server end, and are sent again.
//
// Thread-safe.
class TableLocation final : public TableFollower,
                            public std::enable_shared_from_this<TableLocation> {
 public:
  using Placement = std::shared_ptr<const TablePlacement>;

  static std::shared_ptr<TableLocation> Create(
      std::shared_ptr<TableClient> client, const TableSpec& spec,
      TableRoute route);
  ~TableLocation() override;

  TableClient& client() const { return *client_; }
  const TableSpec& spec() const { return spec_; }
  Placement placement() const;

  template <class T>
  using Sender = typename LocatedRequestOf<T>::Sender;

  // Calls `send`, which returns a future of the result, and again if the table
  // has moved, within the timeout of a call of the worker. `send` is called in
  // any thread. Holds `bytes` until the request is complete.
  //
  // Errors of `send`, and kFailedPrecondition: the table that was restored has
  // another description.
  template <class T>
  async::Future<T> Call(Sender<T> send, HeldBytes bytes = {}) {
    const auto request = std::make_shared<LocatedRequestOf<T>>(
        std::move(send), std::move(bytes));
    Attempt(request, Deadline(), TableClient::DefaultOptions());
    return request->future();
  }

  // The result of a request that must not be sent again to another version of
  // the table than `sent`. If the table has moved, later requests follow, and
  // the error is kAborted with this message.
  template <class T>
  async::Future<T> WithoutFollowing(const Placement& sent,
                                    async::Future<T> result,
                                    std::string message) {
    const auto request =
        std::make_shared<LocatedRequestOf<T>>(std::move(result));
    Await(request, sent->route.version,
          [request, message = std::move(message)](const absl::Status&) {
            request->Fail(absl::AbortedError(message));
          });
    return request->future();
  }

  // TableFollower:
  const std::string& table() const override { return spec_.name; }
  TableRoute route() const override { return placement()->route; }
  void OnTableMoved(const RecordedTable& record) override;

 private:
  static constexpr uint64_t kReady = 0;

  // A request that was sent to the servers of this version.
  struct Request {
    int64_t version = 0;
    // Ends it with kCancelled.
    absl::AnyInvocable<void() const> cancel;
  };

  TableLocation(std::shared_ptr<TableClient> client, const TableSpec& spec,
                TableRoute route);

  // Returns a number for the attempt that `request` has under way. If the table
  // has moved already, cancels it.
  uint64_t AddRequest(int64_t version, const LocatedRequest& request);
  // Returns false if the request was cancelled because the table has moved.
  bool EndRequest(uint64_t request);
  // Ends the requests that were sent to a version below this one.
  void CancelRequests(int64_t version);

  // Uses what the store records, if its version is higher.
  absl::Status Use(const RecordedTable& record);

  // Whether a request for `version` may have failed because the table moved.
  bool MayHaveMoved(const absl::Status& status, int64_t version);
  // Completes once the store was read by a read that has begun after this call,
  // with an error if the record cannot be used. `joins`: one that is under way
  // will do.
  async::Future<void> Refresh(int64_t version, bool joins = false);
  absl::Status ReadRoute();
  async::MonotonicTime Deadline() const;
  // kDeadlineExceeded: there is no time left.
  absl::StatusOr<rpc::MethodCallOptions> OptionsUntil(
      async::MonotonicTime deadline) const;

  using OnMoved = absl::AnyInvocable<void(const absl::Status& status) &&>;

  // Sends `request`, and again if the table has moved.
  void Attempt(const std::shared_ptr<LocatedRequest>& request,
               async::MonotonicTime deadline,
               const rpc::MethodCallOptions& options);
  // Completes `request`, which was sent to `version`, with the result of its
  // attempt. If the table has moved since, calls `moved` with the error of the
  // attempt instead, once the new placement is known.
  void Await(const std::shared_ptr<LocatedRequest>& request, int64_t version,
             OnMoved moved);

  const std::shared_ptr<TableClient> client_;
  const TableSpec spec_;
  mutable async::Mutex mutex_;
  Placement placement_ ABSL_GUARDED_BY(mutex_);
  // The read of the store that is under way, which all requests share.
  async::Future<void> refresh_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_request_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<uint64_t, Request> requests_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_ROUTE_TABLE_LOCATION_H_

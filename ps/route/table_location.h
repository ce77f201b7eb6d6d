// The place of a table, for the handles that use it.

#ifndef HAWSER_PS_ROUTE_TABLE_LOCATION_H_
#define HAWSER_PS_ROUTE_TABLE_LOCATION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/mutex.h"
#include "ps/route/join_parts.h"
#include "ps/storage/table_spec.h"
#include "ps/table_client.h"
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
// Thread-safe.
class TableLocation : public std::enable_shared_from_this<TableLocation> {
 public:
  using Placement = std::shared_ptr<const TablePlacement>;

  TableLocation(std::shared_ptr<TableClient> client, const TableSpec& spec,
                TableRoute route);

  TableClient& client() const { return *client_; }
  const TableSpec& spec() const { return spec_; }
  Placement placement() const;

  // Calls `send(const TablePlacement&, const rpc::MethodCallOptions&)`, which
  // returns a Future<T>, and again if the table has moved, within the timeout
  // of a call of the worker. `send` must be copyable, and is called in any
  // thread.
  //
  // Errors of `send`, and kFailedPrecondition: the table that was restored has
  // another description.
  template <class T, class Send>
  async::Future<T> Call(Send send) {
    return Attempt<T>(std::make_shared<const Send>(std::move(send)), Deadline(),
                      TableClient::DefaultOptions());
  }

  // The result of a request that must not be sent again to another version of
  // the table than `sent`. If the table has moved, later requests follow, and
  // the error is kAborted with this message.
  template <class T>
  async::Future<T> WithoutFollowing(const Placement& sent,
                                    async::Future<T> result,
                                    std::string message) {
    return std::move(result).Then(
        [self = shared_from_this(), version = sent->route.version,
         message = std::move(message)](async::Result<T> done) {
          return self->AfterMove<T>(
              std::move(done), version,
              [message](const absl::Status&) -> async::Future<T> {
                return async::MakeReadyFuture<T>(absl::AbortedError(message));
              });
        });
  }

 private:
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

  // Returns `done`, or if the table has moved since `version`, the result of
  // `moved(status)`, called once the new placement is known.
  template <class T, class Moved>
  async::Future<T> AfterMove(async::Result<T> done, int64_t version,
                             Moved moved) {
    const absl::Status status = StatusOfResult(done);
    if (status.ok() || !MayHaveMoved(status, version)) {
      return async::MakeReadyFuture<T>(std::move(done));
    }
    return Refresh(version).Then(
        [self = shared_from_this(), status, version, moved = std::move(moved)](
            const absl::Status& refreshed) -> async::Future<T> {
          if (!refreshed.ok()) return async::MakeReadyFuture<T>(refreshed);
          if (self->placement()->route.version <= version) {
            return async::MakeReadyFuture<T>(status);
          }
          return moved(status);
        });
  }

  template <class T, class Send>
  async::Future<T> Attempt(std::shared_ptr<const Send> send,
                           async::MonotonicTime deadline,
                           const rpc::MethodCallOptions& options) {
    const Placement used = placement();
    return (*send)(*used, options)
        .Then([self = shared_from_this(), send, deadline,
               version = used->route.version](async::Result<T> done) {
          return self->AfterMove<T>(
              std::move(done), version,
              [self, send,
               deadline](const absl::Status& status) -> async::Future<T> {
                const auto next = self->OptionsUntil(deadline);
                if (!next.ok()) return async::MakeReadyFuture<T>(status);
                return self->Attempt<T>(send, deadline, *next);
              });
        });
  }

  const std::shared_ptr<TableClient> client_;
  const TableSpec spec_;
  mutable async::Mutex mutex_;
  Placement placement_ ABSL_GUARDED_BY(mutex_);
  // The read of the store that is under way, which all requests share.
  async::Future<void> refresh_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_ROUTE_TABLE_LOCATION_H_

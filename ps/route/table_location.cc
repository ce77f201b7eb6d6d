#include "ps/route/table_location.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/status_macros.h"
#include "ps/route/moved_table.h"
#include "ps/storage/sparse_table.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/host_handle.h"
#include "rpc/agent/service_host.h"

namespace hawser::ps {

TablePlacement::TablePlacement(TableRoute of, int64_t num_shards)
    : route(std::move(of)) {
  const auto count = static_cast<int64_t>(route.servers.size());
  for (int64_t i = 0; i < count; ++i) {
    const ShardRange shards = *ShardsOf({i, count}, num_shards);
    shard_ends.push_back(shards.first + shards.count);
  }
}

TableLocation::TableLocation(std::shared_ptr<TableClient> client,
                             const TableSpec& spec, TableRoute route)
    : client_(std::move(client)),
      spec_(spec),
      placement_(std::make_shared<const TablePlacement>(std::move(route),
                                                        spec.num_shards)) {}

std::shared_ptr<TableLocation> TableLocation::Create(
    std::shared_ptr<TableClient> client, const TableSpec& spec,
    TableRoute route) {
  std::shared_ptr<TableLocation> location(
      new TableLocation(std::move(client), spec, std::move(route)));
  location->client_->moves().Add(location);
  return location;
}

TableLocation::~TableLocation() { client_->moves().OnRemoved(); }

TableLocation::Placement TableLocation::placement() const {
  const async::MutexLock lock(&mutex_);
  return placement_;
}

async::MonotonicTime TableLocation::Deadline() const {
  const rpc::HostHandle::Use host = client_->Acquire();
  if (!host) return async::kNever;
  return async::AddDelay(host->clock().Now(), host->default_timeout());
}

void TableLocation::OnTableMoved(const RecordedTable& record) {
  // If the record cannot be used, the requests fail for the same reason.
  (void)Use(record);
  CancelRequests(record.route.version);
}

uint64_t TableLocation::AddRequest(int64_t version,
                                   const LocatedRequest& request) {
  if (request.ready()) return kReady;
  Request added = {version, request.Canceller()};
  uint64_t number = kReady;
  {
    const async::MutexLock lock(&mutex_);
    number = ++last_request_;
    if (placement_->route.version <= version) {
      requests_.try_emplace(number, std::move(added));
      return number;
    }
  }
  added.cancel();
  return number;
}

bool TableLocation::EndRequest(uint64_t request) {
  if (request == kReady) return true;
  // Destroyed without the lock.
  std::optional<Request> ended;
  const async::MutexLock lock(&mutex_);
  const auto found = requests_.find(request);
  if (found == requests_.end()) return false;
  ended = std::move(found->second);
  requests_.erase(found);
  return true;
}

void TableLocation::CancelRequests(int64_t version) {
  std::vector<Request> cancelled;
  {
    const async::MutexLock lock(&mutex_);
    for (auto request = requests_.begin(); request != requests_.end();) {
      const auto current = request++;
      if (current->second.version >= version) continue;
      cancelled.push_back(std::move(current->second));
      requests_.erase(current);
    }
  }
  for (const Request& request : cancelled) request.cancel();
}

absl::StatusOr<rpc::MethodCallOptions> TableLocation::OptionsUntil(
    async::MonotonicTime deadline) const {
  rpc::MethodCallOptions options = TableClient::DefaultOptions();
  const rpc::HostHandle::Use host = client_->Acquire();
  if (!host || deadline == async::kNever) return options;
  options.timeout = async::TimeBetween(host->clock().Now(), deadline);
  if (*options.timeout > absl::ZeroDuration()) return options;
  return absl::DeadlineExceededError(
      absl::StrCat("table \"", spec_.name,
                   "\" was restored elsewhere, and there was no time left to "
                   "send the request again"));
}

void TableLocation::Attempt(const std::shared_ptr<LocatedRequest>& request,
                            async::MonotonicTime deadline,
                            const rpc::MethodCallOptions& options) {
  const Placement used = placement();
  request->Send(*used, options);
  Await(request, used->route.version,
        [self = shared_from_this(), request,
         deadline](const absl::Status& status) {
          const auto next = self->OptionsUntil(deadline);
          if (next.ok()) return self->Attempt(request, deadline, *next);
          request->Fail(absl::IsCancelled(status) ? next.status() : status);
        });
}

void TableLocation::Await(const std::shared_ptr<LocatedRequest>& request,
                          int64_t version, OnMoved moved) {
  const uint64_t number = AddRequest(version, *request);
  request->OnReady([self = shared_from_this(), request, version, number,
                    moved =
                        std::move(moved)](const absl::Status& status) mutable {
    const bool cancelled = !self->EndRequest(number);
    if (status.ok()) self->client_->moves().OnReply();
    if (status.ok() || (!cancelled && !self->MayHaveMoved(status, version))) {
      return request->Deliver();
    }
    self->Refresh(version).OnReady(
        [self, request, version, status,
         moved = std::move(moved)](const absl::Status& refreshed) mutable {
          if (!refreshed.ok()) return request->Fail(refreshed);
          if (self->placement()->route.version <= version) {
            return request->Fail(status);
          }
          std::move(moved)(status);
        });
  });
}

// A server that has lost the table, or that does not exist any more, may have
// been one of an earlier version.
bool TableLocation::MayHaveMoved(const absl::Status& status, int64_t version) {
  if (MovedRouteOf(status).has_value() || absl::IsNotFound(status)) return true;
  // Later requests need not wait for a server that the table has left.
  if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) {
    (void)Refresh(version);
  }
  return false;
}

absl::Status TableLocation::ReadRoute() {
  absl::StatusOr<RecordedTable> record;
  {
    const rpc::HostHandle::Use host = client_->Acquire();
    if (!host) return absl::FailedPreconditionError("the worker was shut down");
    record = ReadTableRoute(*host->store(), host->agent()->job(), spec_.name);
  }
  // The error of the server says more.
  if (absl::IsNotFound(record.status())) return absl::OkStatus();
  RETURN_IF_ERROR(record);
  RETURN_IF_ERROR(Use(*record));
  CancelRequests(record->route.version);
  return absl::OkStatus();
}

absl::Status TableLocation::Use(const RecordedTable& record) {
  const async::MutexLock lock(&mutex_);
  if (record.route.version <= placement_->route.version) {
    return absl::OkStatus();
  }
  if (record.spec != spec_) {
    return absl::FailedPreconditionError(
        absl::StrCat("table \"", spec_.name,
                     "\" was restored from a snapshot of a table with another "
                     "description: open it again"));
  }
  // Checks a record that others wrote.
  RETURN_IF_ERROR(
      ShardsOf({0, static_cast<int64_t>(record.route.servers.size())},
               spec_.num_shards));
  placement_ =
      std::make_shared<const TablePlacement>(record.route, spec_.num_shards);
  return absl::OkStatus();
}

async::Future<void> TableLocation::Refresh(int64_t version, bool joins) {
  const rpc::HostHandle::Use host = client_->Acquire();
  if (!host) {
    return async::MakeReadyFuture<void>(
        absl::FailedPreconditionError("the worker was shut down"));
  }
  auto promise = std::make_shared<async::Promise<void>>();
  async::Future<void> future = promise->future();
  async::Future<void> under_way;
  {
    const async::MutexLock lock(&mutex_);
    if (placement_->route.version > version) {
      return async::MakeReadyFuture<void>(absl::OkStatus());
    }
    if (refresh_.valid() && !refresh_.ready()) {
      under_way = refresh_;
    } else {
      refresh_ = future;
    }
  }
  if (under_way.valid() && joins) return under_way;
  if (under_way.valid()) {
    return std::move(under_way).Then(
        [self = shared_from_this(), version](const absl::Status&) {
          return self->Refresh(version, /*joins=*/true);
        });
  }
  // The store may block.
  host->executor().Post([self = shared_from_this(), promise] {
    promise->Set(self->ReadRoute());
  });
  return future;
}

}  // namespace hawser::ps

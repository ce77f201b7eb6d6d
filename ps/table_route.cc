#include "ps/table_route.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "proto/ps.pb.h"
#include "ps/storage/table_codec.h"

namespace hawser::ps {
namespace {

std::string KeyOf(const std::string& job, const std::string& table) {
  return absl::StrCat("ps/", job, "/tables/", table);
}

// `value` is empty if there is no record.
absl::StatusOr<RecordedTable> Parse(const std::string& value,
                                    const std::string& table) {
  v1::TableRoute proto;
  bool readable = proto.ParseFromString(value);
  RecordedTable record{FromProto(proto), {}, proto.reserved()};
  if (readable && record.route.version != 0) {
    absl::StatusOr<TableSpec> spec = FromProto(proto.table());
    readable = spec.ok();
    if (readable) record.spec = *std::move(spec);
  }
  if (readable) return record;
  return absl::DataLossError(absl::StrCat(
      "the store has an unreadable record of the servers of table \"", table,
      "\""));
}

std::string Serialize(const RecordedTable& record) {
  v1::TableRoute proto = ToProto(record.route);
  if (record.route.version != 0) *proto.mutable_table() = ToProto(record.spec);
  proto.set_reserved(record.reserved);
  return proto.SerializeAsString();
}

// Calls `change`, which returns whether it has changed the record, until its
// change is in the store. Returns the record.
absl::StatusOr<RecordedTable> Change(
    store::Store& store, const std::string& job, const std::string& table,
    absl::FunctionRef<absl::StatusOr<bool>(RecordedTable&)> change) {
  const std::string key = KeyOf(job, table);
  // An absent record, at first.
  std::string expected;
  while (true) {
    ASSIGN_OR_RETURN(RecordedTable record, Parse(expected, table));
    ASSIGN_OR_RETURN(const bool changed, change(record));
    if (!changed && !expected.empty()) return record;
    ASSIGN_OR_RETURN(store::CompareAndSetResult result,
                     store.CompareAndSet(key, expected, Serialize(record)));
    if (result.swapped) return record;
    expected = std::move(result.value);
  }
}

// Watches the records of tables until one has a higher version. Lives as long
// as the watch of the store.
class RouteWatch : public std::enable_shared_from_this<RouteWatch> {
 public:
  RouteWatch(store::Store& store, const std::string& job,
             std::vector<TableVersion> tables)
      : store_(store), tables_(std::move(tables)) {
    for (const TableVersion& table : tables_) {
      keys_.push_back(KeyOf(job, table.table));
    }
  }

  async::Future<std::vector<RecordedTable>> Start() {
    async::Future<std::vector<RecordedTable>> moved = promise_.future();
    promise_.OnCancel([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->Cancel();
    });
    // An empty value differs from any record.
    Watch(std::vector<std::string>(keys_.size()));
    return moved;
  }

 private:
  void Watch(std::vector<std::string> known) {
    std::vector<store::WatchedKey> watched;
    for (size_t i = 0; i < keys_.size(); ++i) {
      watched.push_back({keys_[i], std::move(known[i])});
    }
    async::Future<std::vector<std::string>> changed =
        store_.WhenChanged(std::move(watched));
    {
      const async::MutexLock lock(&mutex_);
      changed_ = changed;
      if (cancelled_) changed.Cancel();
    }
    std::move(changed).OnReady(
        [self = shared_from_this()](
            const absl::StatusOr<std::vector<std::string>>& values) {
          self->OnChanged(values);
        });
  }

  void OnChanged(const absl::StatusOr<std::vector<std::string>>& values) {
    if (!values.ok()) {
      promise_.Set(values.status());
      return;
    }
    std::vector<RecordedTable> moved;
    for (size_t i = 0; i < tables_.size(); ++i) {
      absl::StatusOr<RecordedTable> record =
          Parse((*values)[i], tables_[i].table);
      if (record.ok() && record->route.version > tables_[i].version) {
        moved.push_back(*std::move(record));
      }
    }
    if (moved.empty()) {
      Watch(*values);
    } else {
      promise_.Set(std::move(moved));
    }
  }

  void Cancel() {
    async::Future<std::vector<std::string>> changed;
    {
      const async::MutexLock lock(&mutex_);
      cancelled_ = true;
      changed = changed_;
    }
    if (changed.valid()) changed.Cancel();
  }

  store::Store& store_;
  const std::vector<TableVersion> tables_;
  std::vector<std::string> keys_;
  async::Promise<std::vector<RecordedTable>> promise_;
  async::Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  async::Future<std::vector<std::string>> changed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

v1::TableRoute ToProto(const TableRoute& route) {
  v1::TableRoute proto;
  proto.set_version(route.version);
  for (const std::string& server : route.servers) proto.add_servers(server);
  return proto;
}

TableRoute FromProto(const v1::TableRoute& proto) {
  return {proto.version(), {proto.servers().begin(), proto.servers().end()}};
}

absl::StatusOr<RecordedTable> ReadTableRoute(store::Store& store,
                                             const std::string& job,
                                             const std::string& table) {
  const absl::StatusOr<std::string> value =
      store.Get(KeyOf(job, table), absl::ZeroDuration());
  RecordedTable record;
  if (!absl::IsDeadlineExceeded(value.status())) {
    RETURN_IF_ERROR(value);
    ASSIGN_OR_RETURN(record, Parse(*value, table));
  }
  if (record.route.version != 0) return record;
  return absl::NotFoundError(
      absl::StrCat("no table \"", table, "\" was created in job '", job, "'"));
}

absl::StatusOr<RecordedTable> AwaitTableRoute(store::Store& store,
                                              const std::string& job,
                                              const std::string& table) {
  const std::string keys[] = {KeyOf(job, table)};
  ASSIGN_OR_RETURN(const bool recorded, store.Check(keys));
  if (!recorded) return RecordedTable();
  ASSIGN_OR_RETURN(const std::string value, store.Get(keys[0]));
  return Parse(value, table);
}

async::Future<std::vector<RecordedTable>> WhenTablesMove(
    store::Store& store, const std::string& job,
    std::vector<TableVersion> tables) {
  return std::make_shared<RouteWatch>(store, job, std::move(tables))->Start();
}

absl::StatusOr<RecordedTable> RecordNewTable(store::Store& store,
                                             const std::string& job,
                                             const TableRoute& route,
                                             const TableSpec& spec) {
  return Change(store, job, spec.name,
                [&](RecordedTable& record) -> absl::StatusOr<bool> {
                  if (record.route.version != 0) return false;
                  record.route = route;
                  record.spec = spec;
                  record.reserved = std::max(record.reserved, route.version);
                  return true;
                });
}

absl::StatusOr<int64_t> ReserveVersion(store::Store& store,
                                       const std::string& job,
                                       const std::string& table,
                                       int64_t least) {
  ASSIGN_OR_RETURN(const RecordedTable record,
                   Change(store, job, table,
                          [&](RecordedTable& changed) -> absl::StatusOr<bool> {
                            changed.reserved =
                                std::max({changed.reserved + 1,
                                          changed.route.version + 1, least});
                            return true;
                          }));
  return record.reserved;
}

absl::StatusOr<RecordedTable> RecordMove(store::Store& store,
                                         const std::string& job,
                                         const TableRoute& route,
                                         const TableSpec& spec) {
  RecordedTable before;
  RETURN_IF_ERROR(Change(
      store, job, spec.name,
      [&](RecordedTable& record) -> absl::StatusOr<bool> {
        if (record.route.version >= route.version) {
          return absl::AbortedError(absl::StrCat(
              "table \"", spec.name,
              "\" was restored again meanwhile: version ", record.route.version,
              " is recorded, and ", route.version, " is not any more"));
        }
        before = record;
        record = {route, spec, std::max(record.reserved, route.version)};
        return true;
      }));
  return before;
}

}  // namespace hawser::ps

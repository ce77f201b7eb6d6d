#include "ps/table_route.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/status_macros.h"
#include "proto/ps.pb.h"

namespace hawser::ps {
namespace {

std::string KeyOf(const std::string& job, const std::string& table) {
  return absl::StrCat("ps/", job, "/tables/", table);
}

// `value` is empty if there is no record; the version is then 0.
absl::StatusOr<TableRoute> Parse(const std::string& value,
                                 const std::string& table) {
  v1::TableRoute proto;
  if (!proto.ParseFromString(value)) {
    return absl::DataLossError(absl::StrCat(
        "the store has an unreadable record of the servers of table \"", table,
        "\""));
  }
  return TableRoute{proto.version(),
                    {proto.servers().begin(), proto.servers().end()}};
}

std::string Serialize(const TableRoute& route) {
  v1::TableRoute proto;
  proto.set_version(route.version);
  for (const std::string& server : route.servers) proto.add_servers(server);
  return proto.SerializeAsString();
}

}  // namespace

absl::StatusOr<TableRoute> ReadTableRoute(store::Store& store,
                                          const std::string& job,
                                          const std::string& table) {
  const absl::StatusOr<std::string> value =
      store.Get(KeyOf(job, table), absl::ZeroDuration());
  if (absl::IsDeadlineExceeded(value.status())) {
    return absl::NotFoundError(absl::StrCat(
        "no table \"", table, "\" was created in job '", job, "'"));
  }
  RETURN_IF_ERROR(value);
  return Parse(*value, table);
}

absl::StatusOr<TableRoute> WriteTableRoute(
    store::Store& store, const std::string& job, const std::string& table,
    const std::vector<std::string>& servers) {
  const std::string key = KeyOf(job, table);
  std::string expected;
  TableRoute route;
  while (route.servers != servers) {
    const TableRoute next{route.version + 1, servers};
    ASSIGN_OR_RETURN(store::CompareAndSetResult result,
                     store.CompareAndSet(key, expected, Serialize(next)));
    expected = std::move(result.value);
    ASSIGN_OR_RETURN(route, Parse(expected, table));
  }
  return route;
}

}  // namespace hawser::ps

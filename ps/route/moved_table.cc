#include "ps/route/moved_table.h"

#include <cstddef>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/ps.pb.h"

namespace hawser::ps {
namespace {

constexpr char kTypeUrl[] = "type.googleapis.com/hawser.v1.TableRoute";
// rpc/errors/status_details.h drops details above 1,500 bytes in all.
constexpr size_t kMaxBytes = 1000;
constexpr size_t kMaxNamedServers = 8;

std::string Servers(const TableRoute& known) {
  if (known.servers.empty() || known.servers.size() > kMaxNamedServers) {
    return absl::StrCat(known.servers.size(), " servers");
  }
  return absl::StrCat("'", absl::StrJoin(known.servers, "', '"), "'");
}

}  // namespace

absl::Status TableMovedError(const std::string& table, int64_t version,
                             const TableRoute& known) {
  absl::Status status = absl::FailedPreconditionError(absl::StrCat(
      "this server does not hold version ", version, " of table \"", table,
      "\", but knows version ", known.version, " on ", Servers(known),
      ": the table was restored, and is where the store says"));
  v1::TableRoute proto = ToProto(known);
  if (proto.ByteSizeLong() > kMaxBytes) proto.clear_servers();
  status.SetPayload(kTypeUrl, absl::Cord(proto.SerializeAsString()));
  return status;
}

std::optional<TableRoute> MovedRouteOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kTypeUrl);
  v1::TableRoute proto;
  if (!payload.has_value() || !proto.ParseFromString(std::string(*payload))) {
    return std::nullopt;
  }
  return FromProto(proto);
}

}  // namespace hawser::ps

// The error of a request for a version of a table that its receiver does not
// hold.

#ifndef HAWSER_PS_ROUTE_MOVED_TABLE_H_
#define HAWSER_PS_ROUTE_MOVED_TABLE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "ps/table_route.h"

namespace hawser::ps {

// kFailedPrecondition with the v1.TableRoute `known` among its details, without
// servers if these are too many for the trailers of a call: the receiver knows
// this version of the table, which may be its own, and not `version`.
absl::Status TableMovedError(const std::string& table, int64_t version,
                             const TableRoute& known);

// The route in such an error; nullopt for any other status.
std::optional<TableRoute> MovedRouteOf(const absl::Status& status);

}  // namespace hawser::ps

#endif  // HAWSER_PS_ROUTE_MOVED_TABLE_H_

// The results of the parts of a request, which is sent to several servers.

#ifndef HAWSER_PS_ROUTE_JOIN_PARTS_H_
#define HAWSER_PS_ROUTE_JOIN_PARTS_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "async/join.h"
#include "ps/route/moved_table.h"

namespace hawser::ps {

inline absl::Status StatusOfResult(const absl::Status& status) {
  return status;
}
template <class T>
absl::Status StatusOfResult(const absl::StatusOr<T>& result) {
  return result.status();
}

// As async::JoinAll, except that it does not wait for other parts once a server
// says that the table has moved: the request is then sent again, and one of
// these servers may be dead.
template <class T>
auto JoinParts(std::vector<async::Future<T>> parts) {
  if (parts.size() == 1) return async::JoinAll(std::move(parts));
  auto all = async::JoinAll(parts);
  using Joined = typename decltype(all)::value_type;
  // The first result counts.
  auto promise = std::make_shared<async::Promise<Joined>>();
  async::Future<Joined> joined = promise->future();
  joined.SetWaitPoller(async::internal::PollerOf(parts));
  for (const async::Future<T>& part : parts) {
    part.OnReady([promise](const async::Result<T>& result) {
      const absl::Status status = StatusOfResult(result);
      if (MovedRouteOf(status).has_value()) promise->Set(status);
    });
  }
  std::move(all).OnReady(
      [promise](const async::Result<Joined>& result) { promise->Set(result); });
  return joined;
}

}  // namespace hawser::ps

#endif  // HAWSER_PS_ROUTE_JOIN_PARTS_H_

// Options of one call.

#ifndef HAWSER_RPC_IDENTITY_CALL_OPTIONS_H_
#define HAWSER_RPC_IDENTITY_CALL_OPTIONS_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/time/time.h"
#include "rpc/identity/worker_info.h"

namespace hawser::rpc {

// Timeout of a call that waits as long as its peer is alive.
inline constexpr absl::Duration kNoTimeout = absl::InfiniteDuration();

// Destination of a call: a name, an id, or a WorkerInfo, which also selects the
// incarnation.
class Destination {
 public:
  Destination(const char* name) : to_(std::string(name)) {}  // NOLINT
  Destination(std::string name) : to_(std::move(name)) {}    // NOLINT
  Destination(std::string_view name)                         // NOLINT
      : to_(std::string(name)) {}
  Destination(WorkerId id) : to_(id) {}                       // NOLINT
  Destination(WorkerInfo worker) : to_(std::move(worker)) {}  // NOLINT

  const std::variant<std::string, WorkerId, WorkerInfo>& to() const {
    return to_;
  }
  // "worker 'ps0'".
  std::string ToString() const;
  // The name if given, otherwise empty.
  std::string name() const;
  // The worker, as far as it is given: a name, or a WorkerInfo.
  WorkerInfo worker() const;

 private:
  std::variant<std::string, WorkerId, WorkerInfo> to_;
};

struct CallOptions {
  // Timeout from the call until its future completes, including time in the
  // queues of both ends. Unset: the agent's default. Within an inbound call,
  // that call's deadline applies if it is earlier. A negative timeout is
  // kInvalidArgument; zero has already passed.
  std::optional<absl::Duration> timeout = std::nullopt;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_IDENTITY_CALL_OPTIONS_H_

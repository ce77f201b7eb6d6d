// Identity of workers.

#ifndef HAWSER_RPC_IDENTITY_WORKER_INFO_H_
#define HAWSER_RPC_IDENTITY_WORKER_INFO_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace hawser::rpc {

// A worker's number within its job, equal to its rank: 0 to kMax.
class WorkerId {
 public:
  static constexpr int32_t kMax = 32767;

  constexpr WorkerId() = default;
  constexpr explicit WorkerId(int32_t value) : value_(value) {}

  constexpr int32_t value() const { return value_; }
  constexpr bool valid() const { return value_ >= 0 && value_ <= kMax; }

  friend constexpr auto operator<=>(WorkerId, WorkerId) = default;
  template <typename H>
  friend H AbslHashValue(H state, WorkerId id) {
    return H::combine(std::move(state), id.value_);
  }
  friend std::ostream& operator<<(std::ostream& os, WorkerId id) {
    return os << id.value_;
  }

 private:
  int32_t value_ = -1;
};

// A random number, never 0, drawn each time a worker starts. It distinguishes
// successive processes with the same name. Every message names the incarnation
// that it is for; a worker of another incarnation rejects it.
enum class Incarnation : uint64_t {};

constexpr uint64_t ToNumber(Incarnation incarnation) {
  return static_cast<uint64_t>(incarnation);
}

// A worker as known to its peers.
struct WorkerInfo {
  std::string name;
  WorkerId id;
  Incarnation incarnation{};
  // Address at which it serves, in the format of the job's transport.
  std::string address;
  // Roles, named by the job: "ps", "trainer". With TLS each must be in the
  // worker's certificate; a worker that claims others is rejected as a caller
  // and as a destination. For the caller of a call, these are all roles of its
  // certificate. Without TLS roles are unverified, and empty if the worker is
  // known only from its own message.
  std::vector<std::string> roles = {};

  friend bool operator==(const WorkerInfo&, const WorkerInfo&) = default;
};

// "worker 'ps0' (rank 3, incarnation 00c0ffee00c0ffee)".
std::string ToString(const WorkerInfo& worker);
std::string ToString(Incarnation incarnation);

// kInvalidArgument unless `name` is 1 to 127 letters, digits and "-_:.",
// starting with a letter or digit.
absl::Status ValidateWorkerName(std::string_view name);

// Returns a new incarnation from the system's entropy.
Incarnation NewIncarnation();

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_IDENTITY_WORKER_INFO_H_

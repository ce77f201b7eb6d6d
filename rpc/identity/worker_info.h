// Identifiers of workers.

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

// A number drawn at random each time a worker starts, never 0: two processes
// that held one name in turn differ in it. Every message names the incarnation
// it is for, and a worker of another incarnation refuses it.
enum class Incarnation : uint64_t {};

constexpr uint64_t ToNumber(Incarnation incarnation) {
  return static_cast<uint64_t>(incarnation);
}

// One worker as its peers know it.
struct WorkerInfo {
  std::string name;
  WorkerId id;
  Incarnation incarnation{};
  // Where it serves, in the notation of the job's transport.
  std::string address;
  // What it is for, in words of the job's own: "ps", "trainer". With TLS each
  // is in its certificate: who claims others is neither heard nor called. Of
  // the caller of a call it is then all that the certificate says. Without TLS
  // they are claimed, and empty where the worker is known only from a message
  // of its own.
  std::vector<std::string> roles = {};

  friend bool operator==(const WorkerInfo&, const WorkerInfo&) = default;
};

// "worker 'ps0' (rank 3, incarnation 00c0ffee00c0ffee)".
std::string ToString(const WorkerInfo& worker);
std::string ToString(Incarnation incarnation);

// kInvalidArgument unless `name` is 1 to 127 letters, digits and "-_:.", the
// first a letter or digit.
absl::Status ValidateWorkerName(std::string_view name);

// A fresh incarnation from the system's entropy.
Incarnation NewIncarnation();

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_IDENTITY_WORKER_INFO_H_

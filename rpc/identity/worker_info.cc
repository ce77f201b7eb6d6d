#include "rpc/identity/worker_info.h"

#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "net/name.h"

namespace hawser::rpc {

std::string ToString(Incarnation incarnation) {
  return absl::StrFormat("%016x", ToNumber(incarnation));
}

std::string ToString(const WorkerInfo& worker) {
  return absl::StrCat(
      "worker ",
      worker.name.empty() ? "" : absl::StrCat("'", worker.name, "' "), "(rank ",
      worker.id.value(), ", incarnation ", ToString(worker.incarnation), ")");
}

absl::Status ValidateWorkerName(std::string_view name) {
  return net::ValidateName("worker", name);
}

Incarnation NewIncarnation() {
  std::random_device entropy;
  uint64_t number = 0;
  while (number == 0) {
    number = (uint64_t{entropy()} << 32) | entropy();
  }
  return Incarnation{number};
}

}  // namespace hawser::rpc

#include "rpc/types.h"

#include <random>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace hawser::rpc {
namespace {

constexpr size_t kMaxNameLength = 127;

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' ||
         c == '_' || c == ':' || c == '.';
}

}  // namespace

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
  if (name.empty() || name.size() > kMaxNameLength) {
    return absl::InvalidArgumentError(
        absl::StrCat("a worker's name has 1 to ", kMaxNameLength,
                     " characters; this one has ", name.size()));
  }
  for (char c : name) {
    if (!IsNameCharacter(c)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "worker name '",
          absl::CHexEscape(absl::string_view(name.data(), name.size())),
          "' may hold only letters, digits and \"-_:.\""));
    }
  }
  return absl::OkStatus();
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

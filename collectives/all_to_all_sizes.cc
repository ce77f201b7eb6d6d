#include "collectives/all_to_all_sizes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"

namespace hawser::collectives {

absl::StatusOr<uint64_t> CompareSizes(Backend& backend,
                                      std::span<const ConstBytes> inputs,
                                      std::span<const MutableBytes> outputs,
                                      async::MonotonicTime deadline) {
  // Of each rank, what it sends to all, then what it receives from all.
  const size_t n = inputs.size();
  std::vector<uint64_t> own(2 * n);
  for (size_t i = 0; i < n; ++i) {
    own[i] = inputs[i].size();
    own[n + i] = outputs[i].size();
  }
  std::vector<uint64_t> all(2 * n * n);
  std::vector<MutableBytes> parts;
  for (size_t i = 0; i < n; ++i) {
    parts.push_back(
        std::as_writable_bytes(std::span(all).subspan(2 * n * i, 2 * n)));
  }
  RETURN_IF_ERROR(
      backend.AllGather(std::as_bytes(std::span(own)), parts, deadline));
  for (size_t from = 0; from < n; ++from) {
    for (size_t to = 0; to < n; ++to) {
      const uint64_t sent = all[2 * n * from + to];
      const uint64_t received = all[2 * n * to + n + from];
      if (sent == received) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", from, " sends ", sent, " bytes to rank ", to,
                       ", which receives ", received));
    }
  }
  return *std::max_element(all.begin(), all.end());
}

}  // namespace hawser::collectives

// Counts of refused requests.

#ifndef HAWSER_PS_SERVER_REFUSED_REQUESTS_H_
#define HAWSER_PS_SERVER_REFUSED_REQUESTS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"

namespace hawser::ps {

// Counts requests by the code of their error. Lock-free and thread-safe.
class RefusedRequests {
 public:
  // Does nothing if `status` is OK.
  void Count(const absl::Status& status) {
    if (status.ok()) return;
    counts_[static_cast<size_t>(status.code())].fetch_add(
        1, std::memory_order_relaxed);
  }

  // By the name of the code, such as "RESOURCE_EXHAUSTED", without zeros.
  std::map<std::string, int64_t> counts() const {
    std::map<std::string, int64_t> counts;
    for (size_t code = 0; code < counts_.size(); ++code) {
      const int64_t count = counts_[code].load(std::memory_order_relaxed);
      if (count == 0) continue;
      counts[absl::StatusCodeToString(static_cast<absl::StatusCode>(code))] =
          count;
    }
    return counts;
  }

 private:
  // absl::Status::code() returns one of the 17 canonical codes.
  std::array<std::atomic<int64_t>, 17> counts_ = {};
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_SERVER_REFUSED_REQUESTS_H_

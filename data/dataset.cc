#include "data/dataset.h"

#include "absl/strings/str_cat.h"

namespace hawser::data {

absl::Status CheckIndices(std::span<const int64_t> indices, int64_t count) {
  for (const int64_t index : indices) {
    if (index < 0 || index >= count) {
      return absl::OutOfRangeError(absl::StrCat("there is no sample ", index,
                                                " in a data set of ", count));
    }
  }
  return absl::OkStatus();
}

}  // namespace hawser::data

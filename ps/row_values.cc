#include "ps/row_values.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "ps/table_arguments.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::ps {

absl::StatusOr<RowValues> RowValues::Checked(const tensor::Shape& expected,
                                             const std::string& name) const {
  RowValues checked;
  checked.has_parts_ = has_parts_;
  for (const Tensor& part : parts_) {
    RETURN_IF_ERROR(CheckRows(
        part, has_parts_ && part.defined() ? part.shape() : expected, name));
    ASSIGN_OR_RETURN(const Tensor dense, part.Detach().Contiguous());
    ASSIGN_OR_RETURN(checked.parts_.emplace_back(),
                     dense.View({dense.num_elements()}));
  }
  if (checked.num_elements() != expected.num_elements()) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, " in ", parts_.size(), " parts have ", checked.num_elements(),
        " elements, not those of f32", expected.ToString()));
  }
  return checked;
}

int64_t RowValues::num_elements() const {
  int64_t count = 0;
  for (const Tensor& part : parts_) count += part.num_elements();
  return count;
}

std::vector<Tensor> RowValues::Slice(int64_t begin, int64_t count) const {
  std::vector<Tensor> slice;
  for (const Tensor& part : parts_) {
    if (count == 0) break;
    const int64_t size = part.num_elements();
    if (begin < size) {
      const int64_t here = std::min(count, size - begin);
      slice.push_back(*part.Narrow(0, begin, here));
      begin += here;
      count -= here;
    }
    begin -= size;
  }
  return slice;
}

Tensor RowValues::Join(int64_t begin, int64_t count) const {
  std::vector<Tensor> slice = Slice(begin, count);
  if (slice.size() == 1) return std::move(slice[0]);
  Tensor all = Tensor::Empty({count});
  float* next = all.data<float>();
  for (const Tensor& part : slice) {
    const auto size = static_cast<size_t>(part.num_elements());
    std::memcpy(next, part.data<float>(), size * sizeof(float));
    next += size;
  }
  return all;
}

}  // namespace hawser::ps

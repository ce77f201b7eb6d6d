#include "tensor/internal/dim_array.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "async/check.h"

namespace hawser::tensor::internal {

DimArray::DimArray(std::span<const int64_t> values) : DimArray() {
  if (values.size() > kMaxRank) DieRank(values.size());
  rank_ = static_cast<int>(values.size());
  std::copy(values.begin(), values.end(), values_);
}

void DimArray::AssignRest(const int64_t (&values)[kMaxRank]) {
  std::copy(values + 4, values + rank_, values_ + 4);
}

void DimArray::Append(int64_t value) { Insert(rank_, value); }

void DimArray::Insert(int position, int64_t value) {
  if (rank_ == kMaxRank) DieRank(kMaxRank + 1);
  if (position < 0 || position > rank_) DieIndex(position, rank_);
  std::copy_backward(values_ + position, values_ + rank_, values_ + rank_ + 1);
  values_[position] = value;
  ++rank_;
}

void DimArray::Erase(int position) {
  CheckIndex(position);
  std::copy(values_ + position + 1, values_ + rank_, values_ + position);
  --rank_;
}

std::string DimArray::ToString() const {
  return absl::StrCat(
      "[", absl::StrJoin(absl::MakeConstSpan(values_, rank_), ", "), "]");
}

void DimArray::DieIndex(int i, int rank) {
  HAWSER_CHECK(false) << "dimension " << i << " of a list of " << rank;
  std::abort();
}

void DimArray::DieRank(size_t rank) {
  HAWSER_CHECK(false) << "rank " << rank << " exceeds " << kMaxRank;
  std::abort();
}

}  // namespace hawser::tensor::internal

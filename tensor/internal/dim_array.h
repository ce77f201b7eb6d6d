// The fixed-capacity list of integers that shapes and strides are made of.

#ifndef HAWSER_TENSOR_INTERNAL_DIM_ARRAY_H_
#define HAWSER_TENSOR_INTERNAL_DIM_ARRAY_H_

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace hawser::tensor {

// The most dimensions a tensor has.
inline constexpr int kMaxRank = 16;

namespace internal {

// Up to kMaxRank integers, held inline. Copying touches only those in use.
// Growing past kMaxRank or reading past the end aborts.
class DimArray {
 public:
  DimArray() { std::fill_n(values_, 4, 0); }
  explicit DimArray(std::span<const int64_t> values);
  DimArray(const DimArray& other) { Assign(other.values_, other.rank_); }
  DimArray& operator=(const DimArray& other) {
    Assign(other.values_, other.rank_);
    return *this;
  }

  int rank() const { return rank_; }
  int64_t operator[](int i) const { return values_[CheckIndex(i)]; }
  int64_t& operator[](int i) { return values_[CheckIndex(i)]; }
  const int64_t* begin() const { return values_; }
  const int64_t* end() const { return values_ + rank_; }
  std::span<const int64_t> span() const {
    return {values_, static_cast<size_t>(rank_)};
  }

  void Append(int64_t value);
  void Insert(int position, int64_t value);
  void Erase(int position);

  // "[2, 3]".
  std::string ToString() const;

 protected:
  bool Equals(const DimArray& other) const {
    return std::equal(begin(), end(), other.begin(), other.end());
  }

 private:
  [[noreturn]] static void DieIndex(int i, int rank);
  [[noreturn]] static void DieRank(size_t rank);

  int CheckIndex(int i) const {
    if (static_cast<unsigned>(i) >= static_cast<unsigned>(rank_)) [[unlikely]] {
      DieIndex(i, rank_);
    }
    return i;
  }
  // Always copies the first four, which needs no loop for most tensors.
  void Assign(const int64_t (&values)[kMaxRank], int rank) {
    rank_ = rank;
    for (int i = 0; i < 4; ++i) values_[i] = values[i];
    if (rank > 4) [[unlikely]]
      AssignRest(values);
  }
  void AssignRest(const int64_t (&values)[kMaxRank]);

  int rank_ = 0;
  int64_t values_[kMaxRank];  // Zero or set up to the larger of 4 and rank_.
};

}  // namespace internal
}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_INTERNAL_DIM_ARRAY_H_

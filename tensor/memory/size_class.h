// Sizes of the blocks that the CPU allocator caches.

#ifndef HAWSER_TENSOR_MEMORY_SIZE_CLASS_H_
#define HAWSER_TENSOR_MEMORY_SIZE_CLASS_H_

#include <bit>
#include <cstddef>

namespace hawser::tensor::internal {

// A class index and the bytes of its blocks: 64, 128, 192, 256, then four sizes
// per doubling, so that at most a fifth of a larger block is unused.
struct SizeClass {
  int index;
  size_t block_bytes;
};

inline constexpr int kNumSizeClasses = 92;
inline constexpr size_t kLargestCachedBlockBytes = size_t{1} << 30;

// The classes cached per thread come first.
inline constexpr int kNumThreadSizeClasses = 52;
inline constexpr size_t kLargestThreadBlockBytes = size_t{1} << 20;

// The smallest class that holds `bytes` <= kLargestCachedBlockBytes.
constexpr SizeClass SizeClassOf(size_t bytes) {
  if (bytes <= 256) {
    const int index = bytes == 0 ? 0 : static_cast<int>((bytes - 1) / 64);
    return {index, static_cast<size_t>(index + 1) * 64};
  }
  // 2^(log - 1) < bytes <= 2^log.
  const int log = std::bit_width(bytes - 1);
  const size_t base = size_t{1} << (log - 1);
  const int step_log = log - 3;
  const size_t step = (bytes - 1 - base) >> step_log;
  return {4 + (log - 9) * 4 + static_cast<int>(step),
          base + ((step + 1) << step_log)};
}

// The bytes of a block of class `index`.
constexpr size_t SizeClassBytes(int index) {
  if (index < 4) return static_cast<size_t>(index + 1) * 64;
  const int log = 9 + (index - 4) / 4;
  const size_t step = static_cast<size_t>((index - 4) % 4);
  return (size_t{1} << (log - 1)) + ((step + 1) << (log - 3));
}

}  // namespace hawser::tensor::internal

#endif  // HAWSER_TENSOR_MEMORY_SIZE_CLASS_H_

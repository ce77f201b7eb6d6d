// Kernel launch sizes, and the distribution of items and sums over threads.
// Only for CUDA sources.
#ifndef HAWSER_TENSOR_BACKEND_CUDA_LAUNCH_H_
#define HAWSER_TENSOR_BACKEND_CUDA_LAUNCH_H_

#include <algorithm>
#include <cstdint>

namespace hawser::tensor::cuda {

inline constexpr int kThreads = 256;

// Number of blocks for `count` items, `per_block` each; kernels stride over the
// rest.
inline unsigned Blocks(int64_t count, int64_t per_block = kThreads) {
  constexpr int64_t kMaxBlocks = 65535;
  return static_cast<unsigned>(
      std::clamp<int64_t>((count + per_block - 1) / per_block, 1, kMaxBlocks));
}

// Number of threads of a block for rows of `length` elements; whole warps.
inline unsigned RowThreads(int64_t length) {
  return static_cast<unsigned>(
      std::clamp<int64_t>((length + 31) / 32 * 32, 32, kThreads));
}

// The items of a thread: `for (i = FirstItem(); i < count; i += ItemStep())`.
__device__ inline int64_t FirstItem() {
  return int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
__device__ inline int64_t ItemStep() { return int64_t{gridDim.x} * blockDim.x; }

// Reduces `value` over all threads of a block of whole warps with combine(),
// and returns the result in every thread. `scratch` is shared memory of 32
// elements; all threads must call.
template <class C, class Combine>
__device__ C BlockCombine(C value, C* scratch, Combine combine) {
  for (int distance = 16; distance > 0; distance /= 2) {
    value = combine(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  __syncthreads();  // Wait until all threads have read the result of an earlier
                    // call.
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
  __syncthreads();
  value = scratch[0];
  for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) {
    value = combine(value, scratch[warp]);
  }
  return value;
}

template <class C>
__device__ C BlockSum(C value, C* scratch) {
  return BlockCombine(value, scratch, [](C a, C b) { return a + b; });
}

// Combines the rows of `scratch`, shared memory of one element per thread with
// `width` elements in a row, into the first. All threads must call; the block's
// size and `width` are powers of two.
template <class C, class Combine>
__device__ void CombineRows(C* scratch, unsigned width, Combine combine) {
  for (unsigned half = blockDim.x / 2; half >= width; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      scratch[threadIdx.x] =
          combine(scratch[threadIdx.x], scratch[threadIdx.x + half]);
    }
  }
  __syncthreads();
}

}  // namespace hawser::tensor::cuda

#endif  // HAWSER_TENSOR_BACKEND_CUDA_LAUNCH_H_

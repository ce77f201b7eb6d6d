// Random bits from a counter, vectorised for the CPU the program runs on.
#ifndef HAWSER_TENSOR_BACKEND_CPU_VECTOR_PHILOX_H_
#define HAWSER_TENSOR_BACKEND_CPU_VECTOR_PHILOX_H_

#include <cstdint>

namespace hawser::tensor::cpu {

// Writes Philox 4x32-10 of (counter, key), (counter + 1, key), ...: 4 words for
// each of `blocks` counters. Salmon et al., "Parallel random numbers: as easy
// as 1, 2, 3", SC 2011.
void PhiloxBlocks(uint64_t key, uint64_t counter, int64_t blocks,
                  uint32_t* words);

}  // namespace hawser::tensor::cpu

#endif  // HAWSER_TENSOR_BACKEND_CPU_VECTOR_PHILOX_H_

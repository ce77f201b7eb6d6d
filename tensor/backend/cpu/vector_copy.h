// Copies to memory that is not read again soon.

#ifndef HAWSER_TENSOR_BACKEND_CPU_VECTOR_COPY_H_
#define HAWSER_TENSOR_BACKEND_CPU_VECTOR_COPY_H_

#include <cstddef>

namespace hawser::tensor::cpu {

// A memcpy that bypasses the caches for its destination: the destination is not
// fetched before it is overwritten, and cached data is not evicted. For data
// larger than the caches. The ranges must not overlap. This thread sees the
// copy at once, other threads after FinishStreamCopies.
void StreamCopy(void* to, const void* from, size_t size);

// Waits until the copies are in memory. Call once after many copies.
void FinishStreamCopies();

}  // namespace hawser::tensor::cpu

#endif  // HAWSER_TENSOR_BACKEND_CPU_VECTOR_COPY_H_

// Copies of memory that is not read again soon.

#ifndef HAWSER_TENSOR_BACKEND_CPU_VECTOR_COPY_H_
#define HAWSER_TENSOR_BACKEND_CPU_VECTOR_COPY_H_

#include <cstddef>

namespace hawser::tensor::cpu {

// memcpy whose destination does not pass through the caches: what lies there
// is not fetched before it is overwritten, and what is in the caches stays. For
// parts of more than the caches hold. The ranges do not overlap. This thread
// sees the copy at once, others what was copied before FinishStreamCopies.
void StreamCopy(void* to, const void* from, size_t size);

// Once after many copies: it waits until they are in memory.
void FinishStreamCopies();

}  // namespace hawser::tensor::cpu

#endif  // HAWSER_TENSOR_BACKEND_CPU_VECTOR_COPY_H_

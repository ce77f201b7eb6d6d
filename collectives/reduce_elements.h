// Element-wise reduction of arrays.

#ifndef HAWSER_COLLECTIVES_REDUCE_ELEMENTS_H_
#define HAWSER_COLLECTIVES_REDUCE_ELEMENTS_H_

#include <cstddef>
#include <span>

#include "collectives/reduce_op.h"

namespace hawser::collectives {

// Writes source 0 op source 1 op ... to `output`: arrays of `bytes` bytes of
// elements of one dtype. The sources are taken in their order for each element,
// whatever the sizes, so that the result depends on the operands alone. For
// kAverage the sum is divided by `divisor`, or if it is 0 by the number of
// sources. There is at least one source; `output` may be one of them, or not
// overlap any.
void ReduceElements(const Reduction& reduction,
                    std::span<const std::byte* const> sources,
                    std::byte* output, size_t bytes, size_t divisor = 0);

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_REDUCE_ELEMENTS_H_

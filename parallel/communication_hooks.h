// Ways to reduce gradients.

#ifndef HAWSER_PARALLEL_COMMUNICATION_HOOKS_H_
#define HAWSER_PARALLEL_COMMUNICATION_HOOKS_H_

#include "parallel/gradient_bucket.h"
#include "tensor/dtype.h"

namespace hawser::parallel {

// The average over all ranks.
CommunicationHook AllReduceHook();

// The same of gradients that are rounded to `dtype`, f16 or bf16, which halves
// the bytes. Sums are computed in f32. Gradients beyond 65504 overflow in f16.
CommunicationHook CompressHook(tensor::DType dtype);

}  // namespace hawser::parallel

#endif  // HAWSER_PARALLEL_COMMUNICATION_HOOKS_H_

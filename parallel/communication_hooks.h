// Ways to reduce gradients. Buckets may lie on any device that the group
// serves; each hook says what it does elsewhere.

#ifndef HAWSER_PARALLEL_COMMUNICATION_HOOKS_H_
#define HAWSER_PARALLEL_COMMUNICATION_HOOKS_H_

#include <cstdint>

#include "parallel/gradient_bucket.h"
#include "tensor/dtype.h"

namespace hawser::parallel {

// The average over all ranks.
CommunicationHook AllReduceHook();

// The same of gradients that are rounded to `dtype`, f16 or bf16, which halves
// the bytes. Sums are computed in f32. Gradients beyond 65504 overflow in f16.
CommunicationHook CompressHook(tensor::DType dtype);

struct PowerSgdOptions {
  // Columns of the factors of a matrix.
  int64_t rank = 1;
  // Passes before this one average the gradients as they are. At least 2: the
  // buckets are assigned anew before the second pass.
  int64_t first_pass = 2;
  // Of the first factors, the same on all ranks.
  uint64_t seed = 0;
};

// PowerSGD (Vogels, Karimireddy and Jaggi, NeurIPS 2019): the gradient of a
// parameter with rows of n numbers in m rows is replaced by the product of
// factors of m and n rows, if they are smaller; what is lost is added to the
// next gradient. The factors of a pass begin with those of the one before.
// Parameters with one dimension are averaged as they are. For f32 and f64. A
// hook belongs to one object.
//
// Gradients, their errors, matrix products and the reductions stay on the
// bucket's device. The columns of the factors are made orthonormal on the CPU:
// from a GPU, each factor is copied there and back, two in each pass for each
// parameter, and the hook waits for the device.
CommunicationHook PowerSgdHook(PowerSgdOptions options = {});

// Each rank sends the `density` largest of its gradients in each bucket, at
// least one, in (0, 1]; the others are added to the next gradient (Stich,
// Cordonnier and Jaggi, "Sparsified SGD with Memory", NeurIPS 2018). For f32. A
// hook belongs to one object.
//
// Gradients are chosen, kept and added on the CPU: from a GPU, a bucket is
// copied there and its result back, and what is chosen goes over the group's
// backend of the GPU.
CommunicationHook TopKHook(double density);

}  // namespace hawser::parallel

#endif  // HAWSER_PARALLEL_COMMUNICATION_HOOKS_H_

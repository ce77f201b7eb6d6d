// Number of threads that one operation on the CPU may use.
#ifndef HAWSER_TENSOR_COMPUTE_THREADS_H_
#define HAWSER_TENSOR_COMPUTE_THREADS_H_

namespace hawser::tensor {

// A setting of the process, since all its workers share the machine's cores.
// The default is 1, whatever the value of OMP_NUM_THREADS: parallelism comes
// from workers and from concurrent calls. Only matrix products and convolutions
// use more threads.
int ComputeThreads();

// `threads` must be at least 1. Applies to operations that start later.
// Thread-safe.
void SetComputeThreads(int threads);

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_COMPUTE_THREADS_H_

// Number of threads that one operation on the CPU may use.
#ifndef HAWSER_TENSOR_COMPUTE_THREADS_H_
#define HAWSER_TENSOR_COMPUTE_THREADS_H_

namespace hawser::tensor {

// Of this process: all its workers share the machine's processors. 1 unless
// set, whatever OMP_NUM_THREADS says: parallelism comes from workers and from
// calls served side by side. Only matrix products and convolutions use more.
int ComputeThreads();

// At least 1; takes effect for operations that begin later. Thread-safe.
void SetComputeThreads(int threads);

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_COMPUTE_THREADS_H_

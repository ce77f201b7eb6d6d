// Runtime state shared by calls of oneDNN: engine and stream of the calling
// thread, and the number of threads.
#ifndef HAWSER_TENSOR_BACKEND_CPU_ONEDNN_RUNTIME_H_
#define HAWSER_TENSOR_BACKEND_CPU_ONEDNN_RUNTIME_H_

#include "dnnl.hpp"
#include "tensor/dtype.h"

namespace hawser::tensor::cpu {

// Engine of the calling thread. Primitives are not shared between threads, so
// that their memory arguments can be set without a lock.
const dnnl::engine& ThreadEngine();
dnnl::stream& ThreadStream();

// Makes OpenMP, and thus oneDNN, use ComputeThreads() threads in the calling
// thread during the scope.
class OpenMpScope {
 public:
  OpenMpScope();
  ~OpenMpScope();
  OpenMpScope(const OpenMpScope&) = delete;
  OpenMpScope& operator=(const OpenMpScope&) = delete;

  int threads() const { return threads_; }

 private:
  const int threads_;
  const int before_;
};

// `dtype` must be kF32 or kBF16.
dnnl::memory::data_type OneDnnType(DType dtype);

}  // namespace hawser::tensor::cpu

#endif  // HAWSER_TENSOR_BACKEND_CPU_ONEDNN_RUNTIME_H_

// Runtime that calls of oneDNN share: an engine and a stream of the calling
// thread, and the number of threads they may use.
#ifndef HAWSER_TENSOR_BACKEND_CPU_ONEDNN_RUNTIME_H_
#define HAWSER_TENSOR_BACKEND_CPU_ONEDNN_RUNTIME_H_

#include "dnnl.hpp"
#include "tensor/dtype.h"

namespace hawser::tensor::cpu {

// Of the calling thread. Primitives made with one engine are not shared
// between threads, so that their memory arguments can be set without a lock.
const dnnl::engine& ThreadEngine();
dnnl::stream& ThreadStream();

// Makes OpenMP, and so oneDNN, use ComputeThreads() in the calling thread, and
// undoes it at the end.
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

// kF32 or kBF16.
dnnl::memory::data_type OneDnnType(DType dtype);

}  // namespace hawser::tensor::cpu

#endif  // HAWSER_TENSOR_BACKEND_CPU_ONEDNN_RUNTIME_H_

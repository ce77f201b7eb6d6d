#include "tensor/backend/cpu/onednn_runtime.h"

#include <omp.h>

#include "async/check.h"
#include "dnnl.hpp"
#include "tensor/compute_threads.h"
#include "tensor/dtype.h"

namespace hawser::tensor::cpu {
namespace {

struct ThreadState {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

ThreadState& State() {
  static thread_local ThreadState state;
  return state;
}

}  // namespace

const dnnl::engine& ThreadEngine() { return State().engine; }
dnnl::stream& ThreadStream() { return State().stream; }

OpenMpScope::OpenMpScope()
    : threads_(ComputeThreads()), before_(omp_get_max_threads()) {
  if (threads_ != before_) omp_set_num_threads(threads_);
}

OpenMpScope::~OpenMpScope() {
  if (threads_ != before_) omp_set_num_threads(before_);
}

dnnl::memory::data_type OneDnnType(DType dtype) {
  HAWSER_CHECK(dtype == DType::kF32 || dtype == DType::kBF16) << dtype;
  return dtype == DType::kF32 ? dnnl::memory::data_type::f32
                              : dnnl::memory::data_type::bf16;
}

}  // namespace hawser::tensor::cpu

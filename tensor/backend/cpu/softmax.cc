#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "tensor/backend/cpu/block_io.h"
#include "tensor/backend/cpu/cpu_backend.h"
#include "tensor/backend/cpu/ids.h"
#include "tensor/backend/cpu/loop_plan.h"
#include "tensor/backend/cpu/row_kernels.h"

namespace hawser::tensor::cpu {
namespace {

// Calls kernel(inputs, y, n) with each run of `ins` along `dim` as dense `C`s,
// and stores y in `out`. All tensors have one shape.
template <class C, size_t N, class Kernel>
void ForEachLine(const std::array<const Tensor*, N>& ins, int dim, Tensor& out,
                 Kernel&& kernel) {
  const int64_t n = out.rank() == 0 ? 1 : out.dim(dim);
  if (out.num_elements() == 0) return;
  std::array<const Tensor*, N + 1> operands;
  std::copy(ins.begin(), ins.end(), operands.begin());
  operands[N] = &out;
  std::array<int64_t, N + 1> strides;
  for (size_t i = 0; i <= N; ++i) {
    strides[i] = out.rank() == 0 ? 1 : operands[i]->strides()[dim];
    if (n == 1) strides[i] = 1;
  }
  // Iteration over the starts of the lines.
  std::array<Tensor, N + 1> starts;
  std::array<const Tensor*, N + 1> start_pointers;
  for (size_t i = 0; i <= N; ++i) {
    starts[i] =
        out.rank() == 0 ? *operands[i] : *operands[i]->Narrow(dim, 0, 1);
    start_pointers[i] = &starts[i];
  }
  const LoopPlan<N + 1> plan(starts[N].shape(), start_pointers);
  std::array<std::vector<C>, N> buffers;
  for (size_t i = 0; i < N; ++i) {
    if (!IsComputeType<C>(ins[i]->dtype()) || strides[i] != 1) {
      buffers[i].resize(static_cast<size_t>(n));
    }
  }
  const bool direct = IsComputeType<C>(out.dtype()) && strides[N] == 1;
  std::vector<C> result(direct ? 0 : static_cast<size_t>(n));
  plan.ForEachRow([&](const auto& offsets) {
    for (int64_t i = 0; i < plan.row_size(); ++i) {
      std::array<const C*, N> lines;
      for (size_t k = 0; k < N; ++k) {
        lines[k] = ReadBlock(ins[k]->dtype(), ins[k]->raw_data(),
                             offsets[k] + i * plan.row_stride(k), strides[k], n,
                             buffers[k].data());
      }
      const int64_t offset = offsets[N] + i * plan.row_stride(N);
      if (direct) {
        kernel(lines, static_cast<C*>(out.raw_data()) + offset, n);
      } else {
        kernel(lines, result.data(), n);
        WriteBlock(out.dtype(), out.raw_data(), offset, strides[N], n,
                   result.data());
      }
    }
  });
}

}  // namespace

absl::Status CpuBackend::Softmax(SoftmaxKind kind, const Tensor& x, int dim,
                                 Tensor& y) {
  VisitFloatComputeType(x.dtype(), [&]<class C>() {
    ForEachLine<C, 1>({&x}, dim, y, [kind](const auto& in, C* out, int64_t n) {
      SoftmaxRow(kind, in[0], n, out);
    });
  });
  return absl::OkStatus();
}

absl::Status CpuBackend::SoftmaxGrad(SoftmaxKind kind, const Tensor& y,
                                     const Tensor& dy, int dim, Tensor& dx) {
  VisitFloatComputeType(y.dtype(), [&]<class C>() {
    ForEachLine<C, 2>({&y, &dy}, dim, dx,
                      [kind](const auto& in, C* out, int64_t n) {
                        SoftmaxGradRow(kind, in[0], in[1], n, out);
                      });
  });
  return absl::OkStatus();
}

absl::Status CpuBackend::SoftmaxCrossEntropy(const Tensor& logits,
                                             const Tensor& labels, Tensor& loss,
                                             Tensor& probs) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> ids,
                   ReadIds("SoftmaxCrossEntropy", labels, logits.dim(1)));
  double sum = 0;
  VisitFloatComputeType(logits.dtype(), [&]<class C>() {
    auto label = ids.begin();
    ForEachLine<C, 1>({&logits}, 1, probs,
                      [&](const auto& in, C* out, int64_t n) {
                        sum += CrossEntropyRow(in[0], n, *label++, out);
                      });
    const C mean = static_cast<C>(sum / static_cast<double>(ids.size()));
    WriteBlock(loss.dtype(), loss.raw_data(), 0, 1, 1, &mean);
  });
  return absl::OkStatus();
}

absl::Status CpuBackend::SoftmaxCrossEntropyGrad(const Tensor& probs,
                                                 const Tensor& labels,
                                                 const Tensor& dloss,
                                                 Tensor& dlogits) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> ids,
                   ReadIds("SoftmaxCrossEntropyGrad", labels, probs.dim(1)));
  if (probs.num_elements() == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Tensor dense, probs.Contiguous());
  VisitFloatComputeType(probs.dtype(), [&]<class C>() {
    C buffer;
    const C scale =
        *ReadBlock(dloss.dtype(), dloss.raw_data(), 0, 1, 1, &buffer) /
        static_cast<C>(ids.size());
    const int64_t n = probs.dim(1);
    std::vector<C> row(static_cast<size_t>(n));
    for (size_t i = 0; i < ids.size(); ++i) {
      const int64_t offset = static_cast<int64_t>(i) * n;
      const C* const p =
          ReadBlock(dense.dtype(), dense.raw_data(), offset, 1, n, row.data());
      const bool direct = IsComputeType<C>(dlogits.dtype());
      C* const d =
          direct ? static_cast<C*>(dlogits.raw_data()) + offset : row.data();
      for (int64_t j = 0; j < n; ++j) d[j] = p[j] * scale;
      d[ids[i]] -= scale;
      if (!direct) {
        WriteBlock(dlogits.dtype(), dlogits.raw_data(), offset, 1, n, d);
      }
    }
  });
  return absl::OkStatus();
}

}  // namespace hawser::tensor::cpu

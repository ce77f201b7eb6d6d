#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "absl/status/status.h"
#include "tensor/backend/cpu/block_io.h"
#include "tensor/backend/cpu/cpu_backend.h"
#include "tensor/backend/cpu/loop_plan.h"
#include "tensor/backend/cpu/scalar_elementwise.h"
#include "tensor/backend/cpu/vector_elementwise.h"

namespace hawser::tensor::cpu {
namespace {

// Whether `t` and `out` can be iterated with one index.
bool IsDenseLike(const Tensor& t, const Tensor& out) {
  return t.is_contiguous() && t.shape() == out.shape();
}

// Calls kernel(inputs, outputs, n) on runs of at most kBlock elements, read as
// dense `C`s. Its results, of type `R`, are stored in `out`, which is dense if
// R is bool. The inputs broadcast to `out`.
template <class C, class R, size_t N, class Kernel>
void MapBlocks(const std::array<const Tensor*, N>& in, Tensor& out,
               Kernel&& kernel) {
  std::array<const Tensor*, N + 1> operands;
  std::copy(in.begin(), in.end(), operands.begin());
  operands[N] = &out;
  const LoopPlan<N + 1> plan(out.shape(), operands);
  const bool direct = IsComputeType<R>(out.dtype()) && plan.row_stride(N) == 1;
  R* const direct_out = static_cast<R*>(out.raw_data());
  std::array<std::array<C, kBlock>, N> in_buffers;
  std::array<R, kBlock> out_buffer;
  plan.ForEachRow([&](const auto& offsets) {
    for (int64_t i = 0; i < plan.row_size(); i += kBlock) {
      const int64_t n = std::min(kBlock, plan.row_size() - i);
      std::array<const C*, N> blocks;
      for (size_t k = 0; k < N; ++k) {
        const int64_t stride = plan.row_stride(k);
        blocks[k] =
            ReadBlock(in[k]->dtype(), in[k]->raw_data(),
                      offsets[k] + i * stride, stride, n, in_buffers[k].data());
      }
      const int64_t offset = offsets[N] + i * plan.row_stride(N);
      if (direct) {
        kernel(blocks, direct_out + offset, n);
      } else {
        kernel(blocks, out_buffer.data(), n);
        if constexpr (!std::is_same_v<R, bool>) {
          WriteBlock(out.dtype(), out.raw_data(), offset, plan.row_stride(N), n,
                     out_buffer.data());
        }
      }
    }
  });
}

// y = a + alpha * b; y may be a.
void AddScaledBlock(const float* a, const float* b, double alpha, float* y,
                    int64_t n) {
  cpu::AddScaled(a, b, static_cast<float>(alpha), y, n);
}
void AddScaledBlock(const double* a, const double* b, double alpha, double* y,
                    int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = a[i] + alpha * b[i];
}
void AddScaledBlock(const int64_t* a, const int64_t* b, double alpha,
                    int64_t* y, int64_t n) {
  const auto scale = static_cast<uint64_t>(static_cast<int64_t>(alpha));
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t product = scale * static_cast<uint64_t>(b[i]);
    y[i] = static_cast<int64_t>(static_cast<uint64_t>(a[i]) + product);
  }
}

}  // namespace

absl::Status CpuBackend::Fill(double value, Tensor& out) {
  if (out.is_contiguous() && value == 0) {
    if (out.byte_size() > 0) {
      std::memset(out.raw_data(), 0, static_cast<size_t>(out.byte_size()));
    }
    return absl::OkStatus();
  }
  VisitDType(out.dtype(), [&]<class T>() {
    T element;
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      element = T(static_cast<float>(value));
    } else if constexpr (std::is_same_v<T, bool>) {
      element = value != 0;
    } else {
      element = static_cast<T>(value);
    }
    T* const data = static_cast<T*>(out.raw_data());
    const LoopPlan<1> plan(out.shape(), {&out});
    plan.ForEachRow([&](const auto& offsets) {
      T* const row = data + offsets[0];
      const int64_t n = plan.row_size(), stride = plan.row_stride(0);
      if (stride == 1) {
        std::fill_n(row, n, element);
      } else {
        for (int64_t i = 0; i < n; ++i) row[i * stride] = element;
      }
    });
  });
  return absl::OkStatus();
}

absl::Status CpuBackend::Unary(UnaryOp op, const Tensor& in, Tensor& out) {
  VisitComputeType(in.dtype(), [&]<class C>() {
    if (IsComputeType<C>(in.dtype()) && IsDenseLike(in, out) &&
        out.is_contiguous()) {
      cpu::Unary(op, in.data<C>(), out.data<C>(), out.num_elements());
      return;
    }
    MapBlocks<C, C, 1>({&in}, out, [op](const auto& x, C* y, int64_t n) {
      cpu::Unary(op, x[0], y, n);
    });
  });
  return absl::OkStatus();
}

absl::Status CpuBackend::Binary(BinaryOp op, const Tensor& a, const Tensor& b,
                                Tensor& out) {
  VisitComputeType(a.dtype(), [&]<class C>() {
    if (IsComputeType<C>(a.dtype()) && IsDenseLike(a, out) &&
        IsDenseLike(b, out) && out.is_contiguous()) {
      cpu::Binary(op, a.data<C>(), b.data<C>(), out.data<C>(),
                  out.num_elements());
      return;
    }
    MapBlocks<C, C, 2>({&a, &b}, out, [op](const auto& x, C* y, int64_t n) {
      cpu::Binary(op, x[0], x[1], y, n);
    });
  });
  return absl::OkStatus();
}

absl::Status CpuBackend::BinaryScalar(BinaryOp op, const Tensor& a, double b,
                                      Tensor& out) {
  VisitComputeType(a.dtype(), [&]<class C>() {
    if constexpr (std::is_same_v<C, float>) {
      const float scalar = static_cast<float>(b);
      if (a.dtype() == DType::kF32 && IsDenseLike(a, out) &&
          out.is_contiguous()) {
        cpu::BinaryScalar(op, a.data<float>(), scalar, out.data<float>(),
                          out.num_elements());
        return;
      }
      MapBlocks<C, C, 1>({&a}, out, [&](const auto& x, C* y, int64_t n) {
        cpu::BinaryScalar(op, x[0], scalar, y, n);
      });
    } else {
      std::array<C, kBlock> scalars;
      scalars.fill(static_cast<C>(b));
      MapBlocks<C, C, 1>({&a}, out, [&](const auto& x, C* y, int64_t n) {
        cpu::Binary(op, x[0], scalars.data(), y, n);
      });
    }
  });
  return absl::OkStatus();
}

absl::Status CpuBackend::AddScaled(const Tensor& a, const Tensor& b,
                                   double alpha, Tensor& out) {
  if (IsDenseLike(a, out) && IsDenseLike(b, out) && out.is_contiguous()) {
    const float scale = static_cast<float>(alpha);
    const int64_t n = out.num_elements();
    if (out.dtype() == DType::kF32) {
      cpu::AddScaled(a.data<float>(), b.data<float>(), scale, out.data<float>(),
                     n);
      return absl::OkStatus();
    }
    if (out.dtype() == DType::kBF16) {
      cpu::AddScaled(a.data<BFloat16>(), b.data<BFloat16>(), scale,
                     out.data<BFloat16>(), n);
      return absl::OkStatus();
    }
  }
  VisitComputeType(out.dtype(), [&]<class C>() {
    MapBlocks<C, C, 2>({&a, &b}, out, [alpha](const auto& x, C* y, int64_t n) {
      AddScaledBlock(x[0], x[1], alpha, y, n);
    });
  });
  return absl::OkStatus();
}

absl::Status CpuBackend::Compare(CompareOp op, const Tensor& a, const Tensor& b,
                                 Tensor& out) {
  VisitComputeType(a.dtype(), [&]<class C>() {
    MapBlocks<C, bool, 2>({&a, &b}, out,
                          [op](const auto& x, bool* y, int64_t n) {
                            cpu::Compare<C>(op, x[0], x[1], y, n);
                          });
  });
  return absl::OkStatus();
}

absl::Status CpuBackend::Where(const Tensor& condition, const Tensor& a,
                               const Tensor& b, Tensor& out) {
  const LoopPlan<4> plan(out.shape(), {&condition, &a, &b, &out});
  // Read as bytes, because bytes from a peer or a file need not be 0 or 1.
  const auto* const flags = static_cast<const uint8_t*>(condition.raw_data());
  VisitDType(out.dtype(), [&]<class T>() {
    const T* const x = a.data<T>();
    const T* const y = b.data<T>();
    T* const result = out.data<T>();
    plan.ForEachRow([&](const auto& offsets) {
      for (int64_t i = 0; i < plan.row_size(); ++i) {
        result[offsets[3] + i * plan.row_stride(3)] =
            flags[offsets[0] + i * plan.row_stride(0)] != 0
                ? x[offsets[1] + i * plan.row_stride(1)]
                : y[offsets[2] + i * plan.row_stride(2)];
      }
    });
  });
  return absl::OkStatus();
}

}  // namespace hawser::tensor::cpu

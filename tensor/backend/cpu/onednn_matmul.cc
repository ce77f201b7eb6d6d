#include "tensor/backend/cpu/onednn_matmul.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "async/check.h"
#include "dnnl.hpp"
#include "tensor/backend/cpu/onednn_runtime.h"
#include "tensor/dtype.h"

namespace hawser::tensor::cpu {
namespace {

using Dims = dnnl::memory::dims;

// Cache key: a MatMulShape and the number of threads, as a list of numbers.
class Key {
 public:
  Key(const MatMulShape& shape, int threads) {
    Add(static_cast<int64_t>(shape.dtype) | int64_t{shape.bias} << 8 |
        int64_t{threads} << 16);
    for (int d = 0; d < shape.rank; ++d) {
      Add(shape.a_dims[d]);
      Add(shape.a_strides[d]);
      Add(shape.b_dims[d]);
      Add(shape.b_strides[d]);
    }
  }

  friend bool operator==(const Key& a, const Key& b) {
    return a.size_ == b.size_ &&
           std::equal(a.values_.begin(), a.values_.begin() + a.size_,
                      b.values_.begin());
  }
  template <class H>
  friend H AbslHashValue(H h, const Key& key) {
    return H::combine_contiguous(std::move(h), key.values_.data(),
                                 static_cast<size_t>(key.size_));
  }

 private:
  void Add(int64_t value) { values_[size_++] = value; }

  int size_ = 0;
  std::array<int64_t, 1 + 4 * kMaxMatMulRank> values_;
};

dnnl::memory::desc Describe(DType dtype, std::span<const int64_t> dims,
                            std::span<const int64_t> strides) {
  return {Dims(dims.begin(), dims.end()), OneDnnType(dtype),
          Dims(strides.begin(), strides.end())};
}

// A primitive with its memory objects, whose pointers are set for each run.
class MatMulCall {
 public:
  // Returns null if oneDNN has no implementation, or only its reference loops,
  // which are thousands of times slower.
  static std::unique_ptr<MatMulCall> Create(const MatMulShape& shape) {
    const size_t rank = static_cast<size_t>(shape.rank);
    Dims out_dims(rank), out_strides(rank), bias_dims(rank, 1);
    int64_t stride = 1;
    for (size_t d = rank; d-- > 0;) {
      out_dims[d] = std::max(shape.a_dims[d], shape.b_dims[d]);
      if (d == rank - 2) out_dims[d] = shape.a_dims[d];
      if (d == rank - 1) out_dims[d] = shape.b_dims[d];
      out_strides[d] = stride;
      stride *= out_dims[d];
    }
    bias_dims[rank - 1] = out_dims[rank - 1];
    const Dims bias_strides(rank, 1);

    auto call = std::make_unique<MatMulCall>();
    const auto first = [rank](const auto& array) {
      return std::span<const int64_t>(array.data(), rank);
    };
    const auto a =
        Describe(shape.dtype, first(shape.a_dims), first(shape.a_strides));
    const auto b =
        Describe(shape.dtype, first(shape.b_dims), first(shape.b_strides));
    const auto out = Describe(shape.dtype, out_dims, out_strides);
    const auto bias = shape.bias
                          ? Describe(shape.dtype, bias_dims, bias_strides)
                          : dnnl::memory::desc();
    const dnnl::matmul::desc desc = shape.bias
                                        ? dnnl::matmul::desc(a, b, bias, out)
                                        : dnnl::matmul::desc(a, b, out);
    const dnnl::matmul::primitive_desc primitive_desc(
        desc, dnnl::primitive_attr(), ThreadEngine(), /*allow_empty=*/true);
    if (!primitive_desc || IsReference(primitive_desc)) return nullptr;
    call->primitive_ = dnnl::matmul(primitive_desc);
    call->AddArgument(DNNL_ARG_SRC, a);
    call->AddArgument(DNNL_ARG_WEIGHTS, b);
    call->AddArgument(DNNL_ARG_DST, out);
    if (shape.bias) call->AddArgument(DNNL_ARG_BIAS, bias);
    return call;
  }

  void Run(const void* a, const void* b, const void* bias, void* out) {
    const std::array<void*, 4> pointers = {const_cast<void*>(a),
                                           const_cast<void*>(b), out,
                                           const_cast<void*>(bias)};
    for (int i = 0; i < num_args_; ++i) {
      dnnl_memory_set_data_handle(args_[i].memory, pointers[i]);
    }
    const dnnl_status_t status = dnnl_primitive_execute(
        primitive_.get(), ThreadStream().get(), num_args_, args_.data());
    HAWSER_CHECK(status == dnnl_success) << "oneDNN status " << status;
  }

 private:
  static bool IsReference(const dnnl::matmul::primitive_desc& desc) {
    return std::string_view(desc.impl_info_str()).starts_with("ref");
  }

  void AddArgument(int id, const dnnl::memory::desc& desc) {
    memories_[num_args_] = dnnl::memory(desc, ThreadEngine(), nullptr);
    args_[num_args_] = {id, memories_[num_args_].get()};
    ++num_args_;
  }

  dnnl::matmul primitive_;
  std::array<dnnl::memory, 4> memories_;
  std::array<dnnl_exec_arg_t, 4> args_;
  int num_args_ = 0;
};

// Programs with more shapes, such as sentence lengths, start over.
constexpr size_t kMaxCalls = 1024;

using CallCache = absl::flat_hash_map<Key, std::unique_ptr<MatMulCall>>;

CallCache& ThreadCalls() {
  ThreadEngine();  // Created first, so that it outlives the calls.
  static thread_local CallCache calls;
  return calls;
}

// BLAS arguments of an operand with these last two dims: row-major, or
// transposed.
struct SgemmOperand {
  char transposed;
  int64_t stride;

  static SgemmOperand Of(const MatMulShape& shape,
                         const std::array<int64_t, kMaxMatMulRank>& strides) {
    const bool row_major = strides[shape.rank - 1] == 1;
    return {row_major ? 'N' : 'T', strides[row_major ? 0 : 1]};
  }
};

// Product of two f32 matrices, without bias.
void Sgemm(const MatMulShape& shape, const void* a, const void* b, void* out) {
  const auto left = SgemmOperand::Of(shape, shape.a_strides);
  const auto right = SgemmOperand::Of(shape, shape.b_strides);
  const int64_t n = shape.b_dims[1];
  const dnnl_status_t status =
      dnnl_sgemm(left.transposed, right.transposed, shape.a_dims[0], n,
                 shape.a_dims[1], 1.0f, static_cast<const float*>(a),
                 left.stride, static_cast<const float*>(b), right.stride, 0.0f,
                 static_cast<float*>(out), n);
  HAWSER_CHECK(status == dnnl_success) << "oneDNN status " << status;
}

bool SgemmDoes(const MatMulShape& shape) {
  return shape.dtype == DType::kF32 && shape.rank == 2 && !shape.bias;
}

// Measured by matmul_benchmark: sgemm is up to 10 % faster for a row-major b,
// except for short sums, and for a transposed a. It is slower for a transposed
// b. The first sgemm of a process generates code for 30 ms, a primitive for
// 0.2 to 2 ms: products of less than a millisecond win that back only after
// thousands of calls.
bool SgemmIsFaster(const MatMulShape& shape) {
  if (shape.b_strides[1] != 1) return false;
  constexpr int64_t kShortSum = 128;
  constexpr int64_t kLargeProduct = int64_t{1} << 25;
  const int64_t sum = shape.a_dims[1];
  return (shape.a_strides[1] != 1 || sum >= kShortSum) &&
         shape.a_dims[0] * shape.b_dims[1] * sum >= kLargeProduct;
}

}  // namespace

bool MultiplyOneDnn(const MatMulShape& shape, const void* a, const void* b,
                    const void* bias, void* out) {
  const OpenMpScope openmp;
  if (SgemmDoes(shape) && SgemmIsFaster(shape)) {
    Sgemm(shape, a, b, out);
    return true;
  }
  CallCache& calls = ThreadCalls();
  const Key key(shape, openmp.threads());
  auto it = calls.find(key);
  if (it == calls.end()) [[unlikely]] {
    if (calls.size() >= kMaxCalls) calls.clear();
    it = calls.emplace(key, MatMulCall::Create(shape)).first;
  }
  if (it->second == nullptr) {
    if (!SgemmDoes(shape)) return false;
    Sgemm(shape, a, b, out);
    return true;
  }
  it->second->Run(a, b, bias, out);
  return true;
}

}  // namespace hawser::tensor::cpu

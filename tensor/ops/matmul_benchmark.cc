// The matrix products of three multilayer perceptrons' training steps, beside
// oneDNN's other ways to multiply. One thread.
//
//   bazel run -c opt //tensor/ops:matmul_benchmark
//
// A layer of `in` to `out` features with `m` rows multiplies three times:
//   NT  y[m, out]  = x[m, in] w[out, in]^T
//   NN  dx[m, in]  = dy[m, out] w[out, in]
//   TN  dw[out, in] = dy[m, out]^T x[m, in]

#include <omp.h>

#include <cstdint>
#include <vector>

#include "benchmark/benchmark.h"
#include "dnnl.hpp"
#include "tensor/ops/matmul.h"
#include "tensor/ops/random.h"
#include "tensor/tensor.h"

namespace hawser::tensor {
namespace {

enum Form : int64_t { kNT, kNN, kTN };

struct Product {
  Tensor a, b;
  int64_t m, n, k;
};

Tensor RandomTensor(const Shape& shape, DType dtype) {
  Generator generator(1);
  return *Uniform(shape, -1, 1, generator, {dtype});
}

Product MakeProduct(const benchmark::State& state, DType dtype) {
  const int64_t m = state.range(1), in = state.range(2), out = state.range(3);
  switch (state.range(0)) {
    case kNT:
      return {RandomTensor({m, in}, dtype), *RandomTensor({out, in}, dtype).T(),
              m, out, in};
    case kNN:
      return {RandomTensor({m, out}, dtype), RandomTensor({out, in}, dtype), m,
              in, out};
    default:
      return {*RandomTensor({m, out}, dtype).T(), RandomTensor({m, in}, dtype),
              out, in, m};
  }
}

void Report(benchmark::State& state, const Product& p) {
  state.counters["GFLOP/s"] =
      benchmark::Counter(2e-9 * static_cast<double>(p.m * p.n * p.k),
                         benchmark::Counter::kIsIterationInvariantRate);
}

void BM_MatMul(benchmark::State& state, DType dtype) {
  const Product p = MakeProduct(state, dtype);
  for (auto _ : state) benchmark::DoNotOptimize(MatMul(p.a, p.b));
  Report(state, p);
}

void BM_Sgemm(benchmark::State& state) {
  omp_set_num_threads(1);
  const Product p = MakeProduct(state, DType::kF32);
  Tensor c = Tensor::Empty({p.m, p.n});
  const bool ta = state.range(0) == kTN, tb = state.range(0) == kNT;
  for (auto _ : state) {
    dnnl_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', p.m, p.n, p.k, 1.0f,
               p.a.data<float>(), ta ? p.m : p.k, p.b.data<float>(),
               tb ? p.k : p.n, 0.0f, c.data<float>(), p.n);
  }
  Report(state, p);
}

// With both operands already in the layouts that oneDNN likes best: what its
// matmul would reach if packing were free.
void BM_PackedMatMul(benchmark::State& state, dnnl::memory::data_type type) {
  using dnnl::memory;
  omp_set_num_threads(1);
  const Product p = MakeProduct(state, DType::kF32);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const auto any = memory::format_tag::any;
  const memory::desc out({p.m, p.n}, type, memory::format_tag::ab);
  const dnnl::matmul::primitive_desc desc(
      {memory::desc({p.m, p.k}, type, any), memory::desc({p.k, p.n}, type, any),
       out},
      engine);
  memory a(desc.src_desc(), engine), b(desc.weights_desc(), engine),
      c(out, engine);
  const dnnl::matmul matmul(desc);
  for (auto _ : state) {
    matmul.execute(
        stream, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
  }
  Report(state, p);
}

void Products(benchmark::internal::Benchmark* benchmark) {
  struct Layer {
    int64_t m, in, out;
  };
  constexpr Layer kLayers[] = {{64, 784, 128},  {64, 128, 64},
                               {64, 64, 10},    {128, 784, 512},
                               {128, 512, 512}, {128, 512, 10}};
  benchmark->ArgNames({"form", "m", "in", "out"});
  for (const Layer& layer : kLayers) {
    for (const int64_t form : {kNT, kNN, kTN}) {
      benchmark->Args({form, layer.m, layer.in, layer.out});
    }
  }
}

BENCHMARK_CAPTURE(BM_MatMul, f32, DType::kF32)->Apply(Products);
BENCHMARK(BM_Sgemm)->Apply(Products);
BENCHMARK_CAPTURE(BM_PackedMatMul, f32, dnnl::memory::data_type::f32)
    ->Apply(Products);
BENCHMARK_CAPTURE(BM_MatMul, bf16, DType::kBF16)->Apply(Products);
BENCHMARK_CAPTURE(BM_PackedMatMul, bf16, dnnl::memory::data_type::bf16)
    ->Apply(Products);

}  // namespace
}  // namespace hawser::tensor

BENCHMARK_MAIN();

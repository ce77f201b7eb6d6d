// What making, viewing, copying and converting tensors costs.

#include <cstdint>
#include <vector>

#include "benchmark/benchmark.h"
#include "tensor/tensor.h"

namespace hawser::tensor {
namespace {

void BM_Empty(benchmark::State& state) {
  const Shape shape{state.range(0)};
  for (auto _ : state) {
    Tensor tensor = Tensor::Empty(shape);
    benchmark::DoNotOptimize(tensor.raw_data());
  }
}
BENCHMARK(BM_Empty)->Arg(1)->Arg(1 << 10)->Arg(1 << 20);

// As the tape of a step does: many alive, then all freed.
void BM_EmptyMany(benchmark::State& state) {
  std::vector<Tensor> tensors(state.range(0));
  for (auto _ : state) {
    for (Tensor& tensor : tensors) tensor = Tensor::Empty({256});
    for (Tensor& tensor : tensors) tensor = Tensor();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_EmptyMany)->Arg(10)->Arg(1000);

void BM_Transpose(benchmark::State& state) {
  const Tensor tensor = Tensor::Empty({16, 16});
  for (auto _ : state) benchmark::DoNotOptimize(tensor.T());
}
BENCHMARK(BM_Transpose);

void BM_Reshape(benchmark::State& state) {
  const Tensor tensor = Tensor::Empty({16, 16});
  for (auto _ : state) benchmark::DoNotOptimize(tensor.Reshape({-1}));
}
BENCHMARK(BM_Reshape);

void BM_ContiguousOfTransposed(benchmark::State& state) {
  const Tensor tensor = *Tensor::Zeros({state.range(0), state.range(0)}).T();
  for (auto _ : state) benchmark::DoNotOptimize(tensor.Contiguous());
  state.SetBytesProcessed(state.iterations() * tensor.byte_size());
}
BENCHMARK(BM_ContiguousOfTransposed)->Arg(64)->Arg(1024);

void BM_Convert(benchmark::State& state) {
  const DType from = static_cast<DType>(state.range(0));
  const DType to = static_cast<DType>(state.range(1));
  const Tensor tensor = Tensor::Ones({1 << 16}, {.dtype = from});
  for (auto _ : state) benchmark::DoNotOptimize(tensor.To(to));
  state.SetItemsProcessed(state.iterations() * tensor.num_elements());
}
BENCHMARK(BM_Convert)->ArgsProduct({{0, 2, 3, 6}, {0, 2, 3, 4}});

}  // namespace
}  // namespace hawser::tensor

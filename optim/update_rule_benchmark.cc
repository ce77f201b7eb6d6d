// Benchmark of the bytes per second that the update rules read and write.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "benchmark/benchmark.h"
#include "optim/make_update_rule.h"
#include "optim/rule_spec.h"
#include "optim/update_rule.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::optim {
namespace {

using tensor::DType;

void Apply(benchmark::State& state, const char* text, DType dtype) {
  const std::unique_ptr<UpdateRule> rule =
      std::move(MakeUpdateRule(*ParseRuleSpec(text))).value();
  const int64_t count = state.range(0);
  Tensor parameter = Tensor::Ones({count}, {.dtype = dtype});
  const Tensor gradient = Tensor::Full({count}, 0.01, {.dtype = dtype});
  ParameterState kept;
  for (auto _ : state) {
    const absl::Status status =
        rule->Apply(parameter, gradient, kept, {rule->learning_rate()});
    if (!status.ok()) state.SkipWithError(status.ToString().c_str());
  }
  // The gradient is read; parameter and slots are read and written.
  const int64_t slot_bytes = dtype == DType::kF64 ? 8 : 4;
  state.SetBytesProcessed(
      state.iterations() * count *
      (3 * ItemBytes(dtype) +
       2 * slot_bytes * static_cast<int64_t>(rule->slots().size())));
}

void RegisterAll() {
  for (const char* rule :
       {"SGD(lr=0.1)", "SGD(lr=0.1,momentum=0.9)", "Adam", "AdamW", "Adagrad",
        "RMSprop", "FTRL(lr=0.1)", "LAMB"}) {
    for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16}) {
      benchmark::RegisterBenchmark(
          (std::string(rule) + "/" + std::string(DTypeName(dtype))).c_str(),
          Apply, rule, dtype)
          // A small parameter, one that fits in the cache, and a larger one.
          ->Arg(64)
          ->Arg(1 << 14)
          ->Arg(1 << 22);
    }
  }
}

}  // namespace
}  // namespace hawser::optim

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  hawser::optim::RegisterAll();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

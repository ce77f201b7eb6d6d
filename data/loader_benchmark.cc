// Time of an epoch over an npy file, with batches fetched by the loader or by
// the caller. Each batch is followed by a step that takes about as long as its
// fetch.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "async/check.h"
#include "async/thread_pool.h"
#include "benchmark/benchmark.h"
#include "data/batch_sampler.h"
#include "data/dataset.h"
#include "data/loader.h"
#include "data/npy_dataset.h"
#include "data/random_sampler.h"
#include "tensor/io/npy.h"
#include "tensor/tensor.h"

namespace hawser::data {
namespace {

constexpr int64_t kSamples = 1024;
constexpr int64_t kBatchSamples = 64;
constexpr int64_t kSampleFloats = int64_t{3} * 64 * 64;

std::shared_ptr<const Dataset> Images() {
  static const std::shared_ptr<const NpyDataset> dataset = [] {
    const char* const directory = std::getenv("TEST_TMPDIR");
    const std::string path =
        std::string(directory == nullptr ? "/tmp" : directory) +
        "/loader_benchmark.npy";
    HAWSER_CHECK(
        tensor::WriteNpy(path, Tensor::Ones({kSamples, kSampleFloats})).ok());
    auto opened = *NpyDataset::Open({path});
    std::remove(path.c_str());  // The data set keeps it open.
    return opened;
  }();
  return dataset;
}

std::vector<int64_t> Indices() {
  return RandomSampler::Create({.dataset_count = kSamples})->Indices(0);
}

void Step(const std::vector<Tensor>& batch) {
  const float* const pixels = batch[0].data<float>();
  float sum = 0;
  for (int64_t i = 0; i < batch[0].num_elements(); ++i) sum += pixels[i];
  benchmark::DoNotOptimize(sum);
}

void BM_FetchByTheCaller(benchmark::State& state) {
  const auto dataset = Images();
  const std::vector<int64_t> indices = Indices();
  const BatchSampler batches = *BatchSampler::Create(kBatchSamples, false);
  for (auto _ : state) {
    for (int64_t i = 0; i < batches.NumBatches(kSamples); ++i) {
      Step(*dataset->Fetch(batches.Batch(indices, i)));
    }
  }
  state.SetItemsProcessed(state.iterations() * kSamples);
}
BENCHMARK(BM_FetchByTheCaller)->UseRealTime();

// Argument: number of threads.
void BM_FetchByTheLoader(benchmark::State& state) {
  const auto dataset = Images();
  async::ThreadPool pool({.num_threads = static_cast<int>(state.range(0))});
  for (auto _ : state) {
    Loader loader = *Loader::Start(dataset, Indices(),
                                   {.batch_samples = kBatchSamples}, &pool);
    for (auto batch = *loader.Next(); batch.has_value();
         batch = *loader.Next()) {
      Step(*batch);
    }
  }
  state.SetItemsProcessed(state.iterations() * kSamples);
}
BENCHMARK(BM_FetchByTheLoader)->Arg(1)->Arg(2)->UseRealTime();

}  // namespace
}  // namespace hawser::data

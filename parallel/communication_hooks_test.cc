#include "parallel/communication_hooks.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "collectives/backend.h"
#include "collectives/loopback/backend.h"
#include "collectives/nccl/backend.h"
#include "collectives/nccl/testing/fake_library.h"
#include "collectives/process_group.h"
#include "collectives/testing/run_ranks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "parallel/gradient_bucket.h"
#include "parallel/testing/hook_passes.h"
#include "store/hash/store.h"
#include "tensor/backend/fake_kernels.h"
#include "tensor/device.h"
#include "tensor/dtype.h"
#include "tensor/fake_device.h"
#include "tensor/tensor.h"

namespace hawser::parallel {
namespace {

using collectives::Backend;
using collectives::ProcessGroup;
using ::hawser::async::IsOk;
using tensor::DType;
using ::testing::DoubleNear;
using ::testing::Pointwise;

// Backends of ranks that have a fake GPU each.
std::vector<std::unique_ptr<Backend>> MakeGpuBackends(int size) {
  store::HashStore store;
  const auto machine = std::make_shared<collectives::FakeNcclMachine>();
  std::vector<std::unique_ptr<Backend>> controls =
      collectives::MakeLoopbackBackends(size);
  std::vector<std::unique_ptr<Backend>> backends(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const auto index = static_cast<size_t>(rank);
      auto backend = collectives::MakeNcclBackend(
          store, rank, size, absl::Seconds(60),
          machine->MakeLibrary(rank, tensor::Cuda()),
          std::move(controls[index]));
      ASSERT_THAT(backend, IsOk());
      backends[index] = *std::move(backend);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return backends;
}

// Access to an element of a tensor of the device through data() aborts.
TEST(CommunicationHooksTest, GradientsOnADeviceAreReducedAsOnTheCpu) {
  tensor::RegisterFakeDevice();
  tensor::RegisterFakeKernels();
  const struct {
    std::string name;
    std::function<CommunicationHook()> make;
    DType dtype;
  } cases[] = {{"all-reduce", AllReduceHook, DType::kF32},
               {"bf16", [] { return CompressHook(DType::kBF16); }, DType::kF32},
               {"PowerSGD", [] { return PowerSgdHook(); }, DType::kF32},
               {"PowerSGD of rank 3", [] { return PowerSgdHook({.rank = 3}); },
                DType::kF64},
               {"top-k", [] { return TopKHook(0.1); }, DType::kF32}};
  for (const auto& [name, make, dtype] : cases) {
    collectives::RunRanks(MakeGpuBackends, 3, [&](ProcessGroup& group) {
      const auto expected = RunHookPasses(group, make(), dtype, tensor::kCpu);
      const auto actual = RunHookPasses(group, make(), dtype, tensor::Cuda());
      ASSERT_THAT(expected, IsOk()) << name;
      ASSERT_THAT(actual, IsOk()) << name;
      for (size_t pass = 0; pass < expected->size(); ++pass) {
        ASSERT_THAT((*actual)[pass],
                    Pointwise(DoubleNear(1e-5), (*expected)[pass]))
            << name << ", pass " << pass;
      }
    });
  }
}

TEST(CommunicationHooksTest, TopKSendsEachElementOnce) {
  collectives::RunRanks(
      collectives::MakeLoopbackBackends, 1, [](ProcessGroup& group) {
        // A tenth of them is no whole number.
        const int count = 25;
        std::vector<float> values;
        for (int i = 0; i < count; ++i) {
          values.push_back(static_cast<float>(count - i));
        }
        GradientBucket bucket;
        bucket.flat = Tensor::FromVector(values, {count});
        bucket.gradients = {bucket.flat};
        bucket.parameters = {0};
        const CommunicationHook hook = TopKHook(0.1);
        std::vector<float> sent(values.size());
        for (int pass = 0; pass < count; ++pass) {
          ASSERT_THAT(hook(group, bucket).Wait(), IsOk());
          const std::vector<float> reduced = bucket.flat.ToVector<float>();
          for (size_t i = 0; i < sent.size(); ++i) sent[i] += reduced[i];
          // Without further gradients.
          ASSERT_THAT(bucket.flat.CopyFrom(Tensor::Zeros({count})), IsOk());
        }
        EXPECT_EQ(sent, values);
      });
}

}  // namespace
}  // namespace hawser::parallel

// The conformance suite over the copies alone: the device is the CPU.
#include "tests/gpu/device_memory_backend.h"

#include <memory>
#include <utility>
#include <vector>

#include "collectives/loopback/backend.h"
#include "collectives/testing/conformance.h"
#include "gtest/gtest.h"
#include "tensor/device.h"

namespace hawser::collectives {
namespace {

std::vector<std::unique_ptr<Backend>> MakeBackendsOfCopies(int size) {
  std::vector<std::unique_ptr<Backend>> backends = MakeLoopbackBackends(size);
  for (auto& backend : backends) {
    backend = tests::MakeDeviceMemoryBackend(std::move(backend), tensor::kCpu);
  }
  return backends;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(
    Copies, ConformanceTest,
    testing::Values(ConformanceParam{.make = MakeBackendsOfCopies, .size = 1},
                    ConformanceParam{.make = MakeBackendsOfCopies, .size = 3}),
    ConformanceName);

}  // namespace hawser::collectives

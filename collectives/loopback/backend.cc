#include "collectives/loopback/backend.h"

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "collectives/host/region.h"
#include "collectives/host/shared_backend.h"

namespace hawser::collectives {
namespace {

// Zero pages, which take memory once they are written. Released by free().
std::shared_ptr<void> ZeroMemory(size_t bytes) {
  constexpr size_t kAlignment = 4096;
  // calloc gives fresh pages without writing them.
  auto memory = std::shared_ptr<void>(std::calloc(1, bytes + kAlignment),
                                      [](void* base) { std::free(base); });
  const auto address = reinterpret_cast<uintptr_t>(memory.get());
  const uintptr_t aligned =
      (address + kAlignment - 1) / kAlignment * kAlignment;
  return {memory, reinterpret_cast<void*>(aligned)};
}

}  // namespace

std::vector<std::unique_ptr<Backend>> MakeLoopbackBackends(int size) {
  const Region::Layout layout = Region::LayoutOf(size);
  const std::shared_ptr<void> memory = ZeroMemory(Region::Bytes(layout));
  const Region region(static_cast<std::byte*>(memory.get()), layout);
  const bool crowded =
      static_cast<unsigned>(size) > std::thread::hardware_concurrency();
  std::vector<std::unique_ptr<Backend>> backends;
  backends.reserve(static_cast<size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    backends.push_back(std::make_unique<SharedBackend>(
        "loopback", memory, region,
        SharedWait::Options{.rank = rank, .crowded = crowded}));
  }
  return backends;
}

}  // namespace hawser::collectives

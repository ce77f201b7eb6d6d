#include "rpc/grpc/tuning/malloc_tuning.h"

#include <cstdlib>
#include <string_view>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace hawser::rpc {
#ifdef __GLIBC__
namespace {

constexpr int kTrimThreshold = 256 << 20;
// The maximum of glibc.
constexpr int kMmapThreshold = 32 << 20;

bool EnvironmentDecides() {
  for (const char* name :
       {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  const char* const tunables = std::getenv("GLIBC_TUNABLES");
  if (tunables == nullptr) return false;
  const std::string_view text(tunables);
  return text.find("malloc.trim_threshold") != std::string_view::npos ||
         text.find("malloc.mmap_threshold") != std::string_view::npos;
}

}  // namespace

void TuneMalloc() {
  [[maybe_unused]] static const bool once = [] {
    if (!EnvironmentDecides()) {
      // Fails if another malloc is linked in; ignored.
      (void)mallopt(M_TRIM_THRESHOLD, kTrimThreshold);
      (void)mallopt(M_MMAP_THRESHOLD, kMmapThreshold);
    }
    return true;
  }();
}
#else
void TuneMalloc() {}
#endif

}  // namespace hawser::rpc

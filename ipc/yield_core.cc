#include "ipc/yield_core.h"

#include <chrono>
#include <thread>

#include "async/clock.h"
#include "ipc/yield_backoff.h"

namespace hawser::ipc {

bool YieldCore() {
  static YieldBackoff backoff;
  const async::MonotonicTime start = std::chrono::steady_clock::now();
  if (backoff.BackingOff(start)) return false;
  std::this_thread::yield();
  backoff.Yielded(start, std::chrono::steady_clock::now());
  return true;
}

}  // namespace hawser::ipc

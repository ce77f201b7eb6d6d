#include "ipc/make_way.h"

#include <chrono>
#include <thread>

#include "async/clock.h"
#include "ipc/yield_rest.h"

namespace hawser::rpc {

bool MakeWay() {
  static YieldRest rest;
  const async::MonotonicTime start = std::chrono::steady_clock::now();
  if (rest.Resting(start)) return false;
  std::this_thread::yield();
  rest.Yielded(start, std::chrono::steady_clock::now());
  return true;
}

}  // namespace hawser::rpc

#ifndef HAWSER_PS_STORAGE_WORKER_TIME_H_
#define HAWSER_PS_STORAGE_WORKER_TIME_H_

#include <cstdint>

namespace hawser::ps {

// The time at which a worker sent a request: in which of its memberships, and
// at which of its clocks.
struct WorkerTime {
  // 0: the worker has not joined.
  uint64_t join = 0;
  int64_t clock = 0;

  bool joined() const { return join != 0; }
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_WORKER_TIME_H_

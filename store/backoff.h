#ifndef HAWSER_STORE_BACKOFF_H_
#define HAWSER_STORE_BACKOFF_H_

#include "absl/time/time.h"
#include "async/clock.h"

namespace hawser::store::internal {

// Exponential backoff between the attempts of one call: 10 ms, doubled each
// time up to 1 s. Not thread-safe.
class Backoff {
 public:
  // Blocks for the next pause, or until `deadline`. Call inside an
  // async::BlockingRegion.
  void Pause(async::MonotonicTime deadline);

 private:
  absl::Duration pause_ = absl::Milliseconds(10);
};

}  // namespace hawser::store::internal

#endif  // HAWSER_STORE_BACKOFF_H_

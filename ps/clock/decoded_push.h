// A push in memory of its own.

#ifndef HAWSER_PS_CLOCK_DECODED_PUSH_H_
#define HAWSER_PS_CLOCK_DECODED_PUSH_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ps/storage/push_log.h"
#include "ps/storage/rows/push_rate.h"
#include "ps/storage/table_partition.h"
#include "ps/storage/worker_time.h"

namespace hawser::ps {

// A push that has been read and checked. A plain value.
struct DecodedPush {
  PushId id;
  WorkerTime time;
  PushRate rate;
  // Distinct, in the order of their hashes, all held by the server.
  std::vector<uint64_t> keys;
  // [keys, width].
  std::vector<float> values;

  size_t bytes() const {
    return keys.size() * sizeof(uint64_t) + values.size() * sizeof(float);
  }
  // Valid while this lives.
  LoggedPush view() const {
    LoggedPush push{id, rate, keys, values};
    push.worker_time = time;
    return push;
  }
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_CLOCK_DECODED_PUSH_H_

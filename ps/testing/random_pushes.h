// Random changes of a table, for tests.

#ifndef HAWSER_PS_TESTING_RANDOM_PUSHES_H_
#define HAWSER_PS_TESTING_RANDOM_PUSHES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "ps/storage/key_hash.h"
#include "ps/storage/push_log.h"
#include "ps/storage/table_partition.h"
#include "rpc/identity/worker_info.h"

namespace hawser::ps {

// A push with what it refers to.
struct RandomPush {
  LoggedPush push() const {
    return {.id = id,
            .rate = {.learning_rate = 0.1},
            .keys = keys,
            .values = values,
            .kind = kind};
  }

  PushId id;
  std::vector<uint64_t> keys;
  std::vector<float> values;
  PushKind kind = PushKind::kUpdate;
};

// Pushes of 1 to 30 keys below `num_keys`, 31 at least, of which some are in
// many pushes.
class RandomPushes {
 public:
  RandomPushes(uint64_t seed, uint64_t num_keys, size_t width)
      : random_(seed), num_keys_(num_keys), width_(width) {}

  std::mt19937_64& random() { return random_; }

  RandomPush Next() {
    RandomPush push;
    push.id = {rpc::Incarnation{1 + random_() % 3}, ++sequence_};
    std::set<uint64_t> chosen;
    const size_t wanted = 1 + random_() % 30;
    while (chosen.size() < wanted) {
      chosen.insert(random_() %
                    (random_() % 2 == 0 ? num_keys_ / 10 : num_keys_));
    }
    push.keys.assign(chosen.begin(), chosen.end());
    std::sort(push.keys.begin(), push.keys.end(),
              [](uint64_t a, uint64_t b) { return HashKey(a) < HashKey(b); });
    push.values.resize(push.keys.size() * width_);
    for (float& value : push.values) {
      value = static_cast<float>(random_() % 1000) / 500 - 1;
    }
    switch (random_() % 8) {
      case 0:
        push.kind = PushKind::kAssign;
        break;
      case 1:
        push.kind = PushKind::kAssignMissing;
        break;
      default:
        break;
    }
    return push;
  }

 private:
  std::mt19937_64 random_;
  const uint64_t num_keys_;
  const size_t width_;
  uint64_t sequence_ = 0;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_TESTING_RANDOM_PUSHES_H_

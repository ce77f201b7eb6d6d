// Time and number of the recent pushes to a row.

#ifndef HAWSER_PS_STORAGE_RETENTION_ROW_USE_H_
#define HAWSER_PS_STORAGE_RETENTION_ROW_USE_H_

#include <algorithm>
#include <cstdint>

namespace hawser::ps {

// The time of the last push in 30 bits, and the number of pushes since the row
// was last considered for eviction, up to kManyPushes, in 2 bits. A plain
// value.
class RowUse {
 public:
  static constexpr uint32_t kManyPushes = 2;
  // In seconds. Older rows would look new.
  static constexpr int64_t kMaxAge = (int64_t{1} << 29) - 1;

  RowUse() = default;
  // `time` is in seconds of TableTime; may be negative.
  RowUse(int64_t time, uint32_t pushes)
      : bits_(static_cast<uint32_t>(time) << 2 | pushes) {}
  static RowUse FromBits(uint32_t bits) {
    RowUse use;
    use.bits_ = bits;
    return use;
  }
  uint32_t bits() const { return bits_; }

  uint32_t pushes() const { return bits_ & 3; }
  // Seconds from the last push to `now`; 0 if that push is later.
  int64_t Age(int64_t now) const {
    const uint32_t age = (static_cast<uint32_t>(now) << 2) - (bits_ & ~3u);
    return std::max(static_cast<int32_t>(age) >> 2, 0);
  }

  // After another push.
  RowUse Pushed(int64_t now) const {
    return {now, std::min(pushes() + 1, kManyPushes)};
  }
  // With other pushes since the last consideration.
  RowUse WithPushes(uint32_t pushes) const {
    return FromBits((bits_ & ~3u) | pushes);
  }
  // With a time that is later by `seconds`, which may be negative.
  RowUse Later(int64_t seconds) const {
    return FromBits(bits_ + (static_cast<uint32_t>(seconds) << 2));
  }

 private:
  uint32_t bits_ = 0;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_RETENTION_ROW_USE_H_

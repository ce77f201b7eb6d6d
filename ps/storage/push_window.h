// Numbers of the pushes of one client that were applied.

#ifndef HAWSER_PS_STORAGE_PUSH_WINDOW_H_
#define HAWSER_PS_STORAGE_PUSH_WINDOW_H_

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hawser::ps {

// Recognises repeated pushes: remembers the last kDepth numbers, which may come
// in any order. Thread-compatible.
class PushWindow {
 public:
  static constexpr uint64_t kDepth = 4096;

  enum class State {
    kNew,
    kApplied,
    // Below the window: not known.
    kTooOld,
  };

  // `sequence` counts from 1.
  State Find(uint64_t sequence) const {
    if (sequence > highest_) return State::kNew;
    if (sequence + kDepth <= highest_) return State::kTooOld;
    return applied_[sequence % kDepth] ? State::kApplied : State::kNew;
  }

  // The highest number that was applied; 0 if there is none.
  uint64_t highest() const { return highest_; }
  // The numbers of the window as bytes: bit n % kDepth represents n.
  std::string Bits() const {
    std::string bits(kDepth / 8, 0);
    for (size_t i = 0; i < kDepth; ++i) {
      if (applied_[i]) bits[i / 8] |= static_cast<char>(1 << (i % 8));
    }
    return bits;
  }
  // The window with these numbers; nullopt if `bits` has another size.
  static std::optional<PushWindow> FromBits(uint64_t highest,
                                            std::string_view bits) {
    if (bits.size() != kDepth / 8) return std::nullopt;
    PushWindow window;
    window.highest_ = highest;
    for (size_t i = 0; i < kDepth; ++i) {
      window.applied_[i] = (bits[i / 8] >> (i % 8) & 1) != 0;
    }
    return window;
  }

  // Remembers a number that is new.
  void Add(uint64_t sequence) {
    if (sequence > highest_ + kDepth) applied_.reset();
    while (highest_ < sequence) {
      if (highest_ + kDepth < sequence) highest_ = sequence - kDepth;
      applied_[++highest_ % kDepth] = false;
    }
    applied_[sequence % kDepth] = true;
  }

 private:
  uint64_t highest_ = 0;
  // Bit n % kDepth represents n, for the last kDepth numbers.
  std::bitset<kDepth> applied_;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_PUSH_WINDOW_H_

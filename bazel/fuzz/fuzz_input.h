// Choices of a fuzz target, read from its input.

#ifndef HAWSER_BAZEL_FUZZ_FUZZ_INPUT_H_
#define HAWSER_BAZEL_FUZZ_FUZZ_INPUT_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace hawser::fuzz {

// Reader of an input from its front. After its end every choice is 0, so an
// input that is cut off stands for a shorter run of the same target. Not
// thread-safe.
class FuzzInput {
 public:
  // `data` must outlive this object.
  FuzzInput(const uint8_t* data, size_t size)
      : rest_(reinterpret_cast<const char*>(data), size) {}

  bool empty() const { return rest_.empty(); }

  uint8_t Byte() {
    if (rest_.empty()) return 0;
    const auto byte = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return byte;
  }

  // A number below `count`, which is 1 to 256.
  size_t Below(size_t count) { return Byte() % count; }

  bool Bool() { return Byte() % 2 == 1; }

  // Mostly a small number; sometimes a limit of an integer type, or any number.
  uint64_t Number() {
    constexpr uint8_t kFirstLimit = 0xF0;
    constexpr uint8_t kAny = 0xFF;
    constexpr std::array<uint64_t, kAny - kFirstLimit> kLimits = {
        255,
        256,
        1023,
        1024,
        1025,
        32767,
        32768,
        65536,
        std::numeric_limits<int32_t>::max(),
        uint64_t{1} << 31,
        std::numeric_limits<uint32_t>::max(),
        uint64_t{1} << 32,
        uint64_t{1} << 48,
        std::numeric_limits<int64_t>::max(),
        std::numeric_limits<uint64_t>::max(),
    };
    const uint8_t first = Byte();
    if (first < kFirstLimit) return first;
    if (first < kAny) return kLimits[first - kFirstLimit];
    uint64_t number = 0;
    for (int i = 0; i < 8; ++i) number = number << 8 | Byte();
    return number;
  }

  // Up to `count` bytes.
  std::string_view Take(size_t count) {
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(taken.size());
    return taken;
  }

  // Up to 255 bytes, after a byte for their number.
  std::string_view Bytes() { return Take(Byte()); }

 private:
  std::string_view rest_;
};

}  // namespace hawser::fuzz

#endif  // HAWSER_BAZEL_FUZZ_FUZZ_INPUT_H_

#ifndef HAWSER_ASYNC_RANDOM_SOURCE_H_
#define HAWSER_ASYNC_RANDOM_SOURCE_H_

#include <cstdint>
#include <limits>

namespace hawser::async {

// A seeded stream of random numbers, identical on every machine, which is
// passed to code that needs jitter, ids or simulation. Not for secrets, and not
// thread-safe. xoshiro256** (Blackman and Vigna, 2018), seeded by splitmix64.
class RandomSource {
 public:
  explicit RandomSource(uint64_t seed);

  // Returns a source seeded by the operating system.
  static RandomSource FromEntropy();

  // Uniform over all values.
  uint64_t Next();
  // Uniform in [0, 1).
  double Uniform();
  // Uniform in [0, bound); `bound` > 0.
  uint64_t Below(uint64_t bound);

  // Makes this a UniformRandomBitGenerator, for the standard library's
  // distributions.
  using result_type = uint64_t;
  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() {
    return std::numeric_limits<uint64_t>::max();
  }
  uint64_t operator()() { return Next(); }

 private:
  uint64_t state_[4];
};

}  // namespace hawser::async

#endif  // HAWSER_ASYNC_RANDOM_SOURCE_H_

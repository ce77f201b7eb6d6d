// The random numbers of one epoch.

#ifndef HAWSER_DATA_EPOCH_RANDOM_H_
#define HAWSER_DATA_EPOCH_RANDOM_H_

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

namespace hawser::data {

// A stream of random numbers that depends on (seed, epoch) alone and is the
// same on every machine: trainers that agree on both draw the same numbers. The
// C++ standard defines the generator and its seeding exactly, but none of its
// distributions, which are therefore not used.
//
// Not thread-safe.
class EpochRandom {
 public:
  EpochRandom(uint64_t seed, int64_t epoch);

  // Uniform in [0, bound), up to a bias below bound / 2^64; `bound` > 0.
  uint64_t Below(uint64_t bound) { return bits_() % bound; }
  // Uniform in [0, 1).
  double Uniform() { return static_cast<double>(bits_() >> 11) * 0x1.0p-53; }
  // 0 to count - 1 in random order.
  std::vector<int64_t> Permutation(int64_t count);

 private:
  std::mt19937_64 bits_;
};

// 0 to count - 1: permuted by EpochRandom(seed, epoch), or in order without a
// seed.
std::vector<int64_t> EpochOrder(int64_t count, std::optional<uint64_t> seed,
                                int64_t epoch);

}  // namespace hawser::data

#endif  // HAWSER_DATA_EPOCH_RANDOM_H_

#include "async/random_source.h"

#include <bit>
#include <random>

#include "async/check.h"

namespace hawser::async {
namespace {

uint64_t SplitMix64(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace

RandomSource::RandomSource(uint64_t seed) {
  for (uint64_t& word : state_) word = SplitMix64(seed);
}

RandomSource RandomSource::FromEntropy() {
  std::random_device device;
  const uint64_t high = device();
  return RandomSource(high << 32 | device());
}

uint64_t RandomSource::Next() {
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

double RandomSource::Uniform() {
  return static_cast<double>(Next() >> 11) * 0x1.0p-53;
}

uint64_t RandomSource::Below(uint64_t bound) {
  HAWSER_CHECK(bound > 0);
  // Values below the threshold would bias the result towards small numbers.
  const uint64_t threshold = (0 - bound) % bound;
  uint64_t value = Next();
  while (value < threshold) value = Next();
  return value % bound;
}

}  // namespace hawser::async

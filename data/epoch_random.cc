#include "data/epoch_random.h"

#include <cstddef>
#include <numeric>
#include <utility>

namespace hawser::data {
namespace {

std::mt19937_64 Generator(uint64_t seed, int64_t epoch) {
  const auto bits = static_cast<uint64_t>(epoch);
  std::seed_seq sequence{
      static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32),
      static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32)};
  return std::mt19937_64(sequence);
}

std::vector<int64_t> InOrder(int64_t count) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  return order;
}

}  // namespace

EpochRandom::EpochRandom(uint64_t seed, int64_t epoch)
    : bits_(Generator(seed, epoch)) {}

std::vector<int64_t> EpochRandom::Permutation(int64_t count) {
  std::vector<int64_t> order = InOrder(count);
  for (size_t i = order.size(); i > 1; --i) {  // Fisher-Yates.
    std::swap(order[i - 1], order[static_cast<size_t>(Below(i))]);
  }
  return order;
}

std::vector<int64_t> EpochOrder(int64_t count, std::optional<uint64_t> seed,
                                int64_t epoch) {
  if (!seed.has_value()) return InOrder(count);
  return EpochRandom(*seed, epoch).Permutation(count);
}

}  // namespace hawser::data

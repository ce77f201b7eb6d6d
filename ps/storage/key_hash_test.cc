#include "ps/storage/key_hash.h"

#include <cstdint>
#include <random>

#include "gtest/gtest.h"

namespace hawser::ps {
namespace {

TEST(KeyHashTest, EveryNumberIsTheHashOfItsKey) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 10000; ++i) {
    const uint64_t number = i < 64 ? uint64_t{1} << i : random();
    EXPECT_EQ(HashKey(KeyWithHash(number)), number);
    EXPECT_EQ(KeyWithHash(HashKey(number)), number);
  }
}

}  // namespace
}  // namespace hawser::ps

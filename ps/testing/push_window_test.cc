#include "ps/storage/push_window.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>

#include "gtest/gtest.h"

namespace hawser::ps {
namespace {

using State = PushWindow::State;

TEST(PushWindowTest, NumbersInAnyOrderAreNewOnce) {
  PushWindow window;
  for (uint64_t sequence : {1, 3, 2, 4096, 4000}) {
    EXPECT_EQ(window.Find(sequence), State::kNew) << sequence;
    window.Add(sequence);
    EXPECT_EQ(window.Find(sequence), State::kApplied) << sequence;
  }
  EXPECT_EQ(window.Find(5), State::kNew);
}

TEST(PushWindowTest, NumbersBelowTheWindowAreTooOld) {
  PushWindow window;
  window.Add(1);
  window.Add(4097);
  EXPECT_EQ(window.Find(1), State::kTooOld);
  EXPECT_EQ(window.Find(2), State::kNew);
}

TEST(PushWindowTest, ALargeStepForgetsAllEarlierNumbers) {
  PushWindow window;
  for (uint64_t sequence = 1; sequence <= 5000; ++sequence)
    window.Add(sequence);
  window.Add(uint64_t{1} << 62);
  EXPECT_EQ(window.Find(5000), State::kTooOld);
  EXPECT_EQ(window.Find((uint64_t{1} << 62) - 1), State::kNew);
  EXPECT_EQ(window.Find(uint64_t{1} << 62), State::kApplied);
}

TEST(PushWindowTest, BitsGiveTheSameWindow) {
  PushWindow window;
  for (uint64_t sequence : {1, 5000, 5001, 9000}) window.Add(sequence);
  const auto copy = PushWindow::FromBits(window.highest(), window.Bits());
  ASSERT_TRUE(copy.has_value());
  for (uint64_t sequence = 1; sequence < 10'000; ++sequence) {
    EXPECT_EQ(copy->Find(sequence), window.Find(sequence)) << sequence;
  }
  EXPECT_FALSE(PushWindow::FromBits(1, "short").has_value());
}

TEST(PushWindowTest, AgreesWithASetOfNumbers) {
  std::mt19937_64 random(3);
  PushWindow window;
  std::set<uint64_t> applied;
  uint64_t highest = 0;
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t low = highest < 5000 ? 1 : highest - 5000;
    const uint64_t sequence = low + random() % (highest + 100 - low);
    const State state = window.Find(sequence);
    if (sequence + PushWindow::kDepth <= highest) {
      ASSERT_EQ(state, State::kTooOld);
      continue;
    }
    ASSERT_EQ(state,
              applied.contains(sequence) ? State::kApplied : State::kNew);
    if (state == State::kNew) {
      window.Add(sequence);
      applied.insert(sequence);
      highest = std::max(highest, sequence);
    }
  }
}

}  // namespace
}  // namespace hawser::ps

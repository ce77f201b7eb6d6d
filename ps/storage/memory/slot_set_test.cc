#include "ps/storage/memory/slot_set.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace hawser::ps {
namespace {

TEST(SlotSetTest, ContainsWhatWasInserted) {
  SlotSet slots;
  EXPECT_FALSE(slots.Contains(0));
  slots.Grow(130);
  EXPECT_EQ(slots.num_slots(), 192);
  for (const uint32_t slot : {0u, 63u, 64u, 129u}) slots.Insert(slot);
  slots.Erase(63);
  EXPECT_EQ(slots.size(), 3);
  EXPECT_FALSE(slots.Contains(63));
  EXPECT_TRUE(slots.Contains(64));
  EXPECT_FALSE(slots.Contains(65));
  // Beyond the end.
  EXPECT_FALSE(slots.Contains(1000));
  EXPECT_EQ(slots.word(0), 1);
  EXPECT_EQ(slots.word(2), 2);

  SlotSet more;
  more.Grow(300);
  more.Insert(299);
  slots.InsertAll(more);
  EXPECT_EQ(slots.size(), 4);
  EXPECT_TRUE(slots.Contains(299));
  slots.Reset(10);
  EXPECT_EQ(slots.num_slots(), 64);
  EXPECT_EQ(slots.size(), 0);
}

}  // namespace
}  // namespace hawser::ps

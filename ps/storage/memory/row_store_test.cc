// Copies of a store whose rows change meanwhile.

#include "ps/storage/memory/row_store.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>

#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "ps/storage/memory/row_copy.h"
#include "ps/storage/memory/slot_set.h"
#include "ps/storage/table_format.h"
#include "ps/storage/table_spec.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;

constexpr size_t kWidth = 16;
// More than one step copies.
constexpr uint64_t kRows = 3000;

class RowStoreCopyTest : public ::testing::Test {
 protected:
  RowStoreCopyTest()
      : store_(*TableFormat::Create(
            {.name = "t", .width = kWidth, .rule = {"SGD", {{"lr", 1}}}})) {
    EXPECT_THAT(store_.Reserve(2 * kRows), IsOk());
    for (uint64_t key = 0; key < kRows; ++key) {
      Fill(store_.Insert(key, store_.Hash(key)), static_cast<float>(key));
    }
  }

  static void Fill(std::byte* row, float value) {
    for (size_t i = 0; i < kWidth; ++i) {
      std::memcpy(row + i * sizeof(float), &value, sizeof(float));
    }
  }
  void Change(uint64_t key, float value) {
    Fill(store_.FindToChange(key, store_.Hash(key)), value);
  }
  void Finish() {
    while (store_.ContinueCopy()) ++steps_;
  }

  // The value of each row of the copy; all weights of a row must be equal.
  std::map<uint64_t, float> Copied() const {
    std::map<uint64_t, float> values;
    copy_.ForEach([&](uint64_t key, const std::byte* row) {
      float weights[kWidth];
      std::memcpy(weights, row, sizeof(weights));
      for (const float weight : weights) EXPECT_EQ(weight, weights[0]);
      EXPECT_TRUE(values.emplace(key, weights[0]).second) << key;
    });
    return values;
  }
  static std::map<uint64_t, float> AtTheBeginning() {
    std::map<uint64_t, float> values;
    for (uint64_t key = 0; key < kRows; ++key) {
      values[key] = static_cast<float>(key);
    }
    return values;
  }

  RowStore store_;
  RowCopy copy_;
  int steps_ = 0;
};

TEST_F(RowStoreCopyTest, HasTheRowsBeforeTheyChanged) {
  store_.BeginCopy(nullptr, copy_);
  EXPECT_TRUE(store_.ContinueCopy());
  for (uint64_t key = 0; key < kRows; ++key) {
    // Also a second time, which is not the state to copy.
    Change(key, -1);
    Change(key, -2);
  }
  Finish();
  EXPECT_EQ(Copied(), AtTheBeginning());
}

TEST_F(RowStoreCopyTest, HasTheRowsThatWereFoundInBatches) {
  store_.BeginCopy(nullptr, copy_);
  for (uint64_t key = 0; key < kRows; ++key) {
    const uint64_t hash = store_.Hash(key);
    std::byte* row = store_.FindAtHome(key, hash, /*changes=*/true);
    if (row == nullptr) row = store_.FindElsewhere(key, hash, /*changes=*/true);
    Fill(row, -1);
  }
  Finish();
  EXPECT_EQ(Copied(), AtTheBeginning());
}

TEST_F(RowStoreCopyTest, HasTheRowsOfEntriesThatChanged) {
  store_.BeginCopy(nullptr, copy_);
  for (size_t i = 0; i < store_.num_positions(); ++i) {
    const auto entry = store_.At(i);
    if (!entry.has_value()) continue;
    store_.MarkChanged(*entry);
    Fill(entry->row, -1);
  }
  Finish();
  EXPECT_EQ(Copied(), AtTheBeginning());
}

TEST_F(RowStoreCopyTest, HasRowsWhoseSlotsWereUsedAgain) {
  store_.BeginCopy(nullptr, copy_);
  for (uint64_t key = 0; key < kRows; key += 2) {
    store_.Erase(key, store_.Hash(key));
  }
  for (uint64_t key = 1; key < kRows; key += 4) {
    store_.Unload(key, store_.Hash(key));
  }
  const size_t slots = store_.num_slots();
  for (uint64_t key = kRows; key < kRows + kRows / 4; ++key) {
    Fill(store_.Insert(key, store_.Hash(key)), -1);
    Fill(store_.Load(2 * key, store_.Hash(2 * key), 0), -1);
  }
  EXPECT_EQ(store_.num_slots(), slots);
  Finish();
  EXPECT_EQ(Copied(), AtTheBeginning());
}

TEST_F(RowStoreCopyTest, HasNoRowsThatWereCreatedLater) {
  store_.BeginCopy(nullptr, copy_);
  EXPECT_THAT(store_.Reserve(5 * kRows), IsOk());
  for (uint64_t key = kRows; key < 6 * kRows; ++key) {
    Fill(store_.Create(key, store_.Hash(key)), -1);
  }
  Finish();
  EXPECT_EQ(Copied(), AtTheBeginning());
}

TEST_F(RowStoreCopyTest, CopiesInShortSteps) {
  store_.BeginCopy(nullptr, copy_);
  Finish();
  const size_t bytes = kRows * kWidth * sizeof(float);
  EXPECT_GE(steps_, bytes / (size_t{128} << 10));
}

TEST_F(RowStoreCopyTest, HasOnlyTheSlotsThatWereAskedFor) {
  SlotSet changed;
  store_.Cut(1);
  Change(7, -7);
  changed.InsertAll(store_.Since(1)->changed);
  store_.BeginCopy(&changed, copy_);
  Change(7, -8);
  Change(8, -8);
  Finish();
  EXPECT_EQ(Copied(), (std::map<uint64_t, float>{{7, -7}}));

  // The copy is used again, for fewer and for more rows.
  store_.BeginCopy(nullptr, copy_);
  Finish();
  auto expected = AtTheBeginning();
  expected[7] = expected[8] = -8;
  EXPECT_EQ(Copied(), expected);
}

TEST_F(RowStoreCopyTest, FilterDropsAndChangesRows) {
  store_.BeginCopy(nullptr, copy_);
  Finish();
  copy_.Filter([](uint64_t key, std::byte* row) {
    if (key == 9) Fill(row, 90);
    return key % 3 == 0;
  });
  std::map<uint64_t, float> expected = AtTheBeginning();
  std::erase_if(expected, [](const auto& row) { return row.first % 3 != 0; });
  expected[9] = 90;
  EXPECT_EQ(Copied(), expected);
}

}  // namespace
}  // namespace hawser::ps

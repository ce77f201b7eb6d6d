// Chains of increments against snapshots with all rows.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_spec.h"
#include "ps/testing/increment_fixture.h"
#include "ps/testing/random_pushes.h"
#include "ps/testing/table_content.h"
#include "tensor/dtype.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;

constexpr uint64_t kKeys = 300;

struct Case {
  const char* name;
  std::string rule;
  tensor::DType dtype = tensor::DType::kF32;
  Retention retention = {};
  int64_t rows_in_memory = 0;
};

class IncrementModelTest : public IncrementFixture,
                           public testing::WithParamInterface<Case> {};

// Random pushes, assignments, pulls and saves, some of which fail, on any of
// the snapshots that the table knows. Each chain must give what a snapshot with
// all rows gives that is saved at the same moment.
TEST_P(IncrementModelTest, AChainIsBitByBitASnapshotWithAllRows) {
  const Case& test = GetParam();
  TableSpec spec = Spec(test.rule);
  spec.dtype = test.dtype;
  spec.retention = test.retention;
  if (test.rows_in_memory > 0) {
    spec.storage = TableStorage::RocksDb(test.rows_in_memory);
  }
  int64_t written = 0;
  int64_t all_rows = 0;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    std::filesystem::remove_all(path_ + "/snapshots");
    RandomPushes pushes(seed, kKeys, kWidth);
    auto& random = pushes.random();
    const auto table = *SparseTable::Create(spec, Options(3));
    std::vector<std::string> saved;
    for (int round = 0; round < 150; ++round) {
      clock_.AdvanceBy(absl::Seconds(random() % 2));
      ASSERT_THAT(Push(*table, pushes.Next()), IsOk());
      const uint64_t key = random() % kKeys;
      std::vector<float> row(kWidth);
      ASSERT_THAT(table->Pull({&key, 1}, row), IsOk());
      if (random() % 8 != 0) continue;
      std::string base;
      if (!saved.empty() && random() % 8 != 0) {
        base = saved[saved.size() - 1 -
                     random() % std::min<size_t>(saved.size(), 3)];
        if (absl::IsFailedPrecondition(
                directory_.BaseOf(*table, base).status())) {
          base = saved.back();
        }
      }
      const std::string name = absl::StrCat("s", round);
      if (random() % 4 == 0) FailToSave(*table, name + "-failed", base);
      const auto size = Save(*table, name, base);
      ASSERT_THAT(size, IsOk());
      saved.push_back(name);
      const TableContent content = ContentOf(*table);
      const auto restored = directory_.Restore("a/t", name, {}, Options(3));
      ASSERT_THAT(restored, IsOk());
      ASSERT_EQ(ContentOf(**restored), content)
          << name << " on " << base << ", seed " << seed;
      EXPECT_EQ((*restored)->num_rows(),
                static_cast<int64_t>(content.rows.size()));
      if (!base.empty()) {
        written += size->rows;
        all_rows += static_cast<int64_t>(content.rows.size());
      }
    }
  }
  EXPECT_LT(written, all_rows * 9 / 10);
}

constexpr auto kF32 = tensor::DType::kF32;
constexpr auto kF16 = tensor::DType::kF16;

INSTANTIATE_TEST_SUITE_P(
    Tables, IncrementModelTest,
    testing::Values(
        Case{"Memory", "SparseAdam(lr=0.1)"},
        Case{"Narrow", "Adagrad(lr=0.1)", kF16},
        Case{"Capacity", "Adagrad(lr=0.1)", kF32, {.max_rows = 120}},
        Case{"Ttl", "SGD(lr=0.1)", kF16, {.ttl = absl::Seconds(15)}},
        Case{
            "Retention",
            "RowWiseAdagrad(lr=0.1)",
            kF32,
            {.admission_pushes = 2, .ttl = absl::Seconds(20), .max_rows = 100}},
        Case{"Disk", "SparseAdam(lr=0.1)", kF32, {}, 30},
        Case{"DiskRetention",
             "RowWiseAdagrad(lr=0.1)",
             kF32,
             {.admission_pushes = 2, .ttl = absl::Seconds(20), .max_rows = 100},
             30}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace hawser::ps

// Increments of tables with key ranges, schedules and clocks.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "optim/rule_spec.h"
#include "optim/schedule_spec.h"
#include "ps/storage/consistency.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_spec.h"
#include "ps/testing/increment_fixture.h"
#include "ps/testing/random_pushes.h"
#include "ps/testing/table_content.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;

constexpr uint64_t kKeys = 300;

using Tables = std::vector<std::unique_ptr<SparseTable>>;

class IncrementOptionsTest : public IncrementFixture {
 protected:
  // The rates of rows depend on their keys and the number of their updates.
  static TableSpec SpecWithRanges() {
    TableSpec spec = Spec("Adagrad(lr=0.1)");
    spec.schedule = optim::ScheduleSpec::Exponential({.gamma = 0.9});
    KeyRange range{.first = 10, .last = 150};
    range.rule = optim::RuleSpec{"Adagrad", {{"eps", 0.5}}};
    range.schedule = optim::ScheduleSpec::Exponential({.gamma = 0.5});
    range.initializer = Initializer::Constant(3);
    spec.key_ranges = {range};
    return spec;
  }

  Tables Create(const TableSpec& spec, int64_t servers) {
    Tables tables;
    for (int64_t i = 0; i < servers; ++i) {
      SparseTableOptions options = Options(2);
      options.shards = *ShardsOf({i, servers}, spec.num_shards);
      tables.push_back(*SparseTable::Create(spec, options));
    }
    return tables;
  }

  static void PushAll(const Tables& tables, const RandomPush& push) {
    for (const auto& table : tables) ASSERT_THAT(Push(*table, push), IsOk());
  }

  void SaveAll(const Tables& tables, const std::string& name,
               const std::string& base) {
    const uint64_t id = last_id_;
    for (const auto& table : tables) {
      last_id_ = id;
      ASSERT_THAT(Save(*table, name, base), IsOk());
    }
  }

  static std::map<uint64_t, std::string> RowsOf(const Tables& tables) {
    std::map<uint64_t, std::string> rows;
    for (const auto& table : tables) rows.merge(ContentOf(*table).rows);
    return rows;
  }
};

// Rows, the pushes that they contain, and further updates.
TEST_F(IncrementOptionsTest, AChainOnOtherServersTrainsOnAsItsTableWould) {
  for (const bool on_disk : {false, true}) {
    TableSpec spec = SpecWithRanges();
    if (on_disk) spec.storage = TableStorage::RocksDb(20);
    const Tables tables = Create(spec, 2);
    RandomPushes pushes(1, kKeys, kWidth);
    std::vector<RandomPush> done;
    std::string base;
    for (const char* const step : {"full", "first", "second"}) {
      const std::string name = absl::StrCat(step, on_disk ? "-disk" : "");
      for (int i = 0; i < 5; ++i) {
        done.push_back(pushes.Next());
        PushAll(tables, done.back());
      }
      SaveAll(tables, name, base);
      base = name;
    }
    const std::map<uint64_t, std::string> saved = RowsOf(tables);
    std::vector<RandomPush> later(5);
    for (RandomPush& push : later) push = pushes.Next();
    for (const RandomPush& push : later) PushAll(tables, push);

    for (const int64_t servers : {1, 2, 3}) {
      Tables restored;
      for (int64_t i = 0; i < servers; ++i) {
        auto table = Restore(base, {i, servers});
        ASSERT_THAT(table, IsOk());
        restored.push_back(*std::move(table));
      }
      // Also those of earlier files are recognised.
      for (const RandomPush& push : done) PushAll(restored, push);
      EXPECT_EQ(RowsOf(restored), saved) << servers;
      for (const RandomPush& push : later) PushAll(restored, push);
      EXPECT_EQ(RowsOf(restored), RowsOf(tables)) << servers;
    }
  }
}

TEST_F(IncrementOptionsTest, AChainHasTheClockOfItsLastSave) {
  TableSpec spec = Spec("SGD(lr=1)");
  spec.consistency = Consistency::Synchronous();
  spec.retention.ttl = absl::Hours(1);
  spec.storage = TableStorage::RocksDb(10);
  const Tables tables = Create(spec, 1);
  RandomPushes pushes(1, kKeys, kWidth);
  std::string base;
  for (int64_t clock : {3, 8, 21}) {
    PushAll(tables, pushes.Next());
    tables[0]->AdvanceClock(clock);
    const std::string name = absl::StrCat("clock-", clock);
    SaveAll(tables, name, base);
    base = name;
  }
  for (int64_t clock : {3, 8, 21}) {
    const auto restored = Restore(absl::StrCat("clock-", clock));
    ASSERT_THAT(restored, IsOk());
    EXPECT_EQ((*restored)->clock(), clock);
  }
  EXPECT_EQ(ContentOf(**Restore(base)), ContentOf(*tables[0]));
}

}  // namespace
}  // namespace hawser::ps

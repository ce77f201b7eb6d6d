// Snapshots that have only what changed since others.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/storage/memory/row_changes.h"
#include "ps/storage/snapshot/table_file.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_partition.h"
#include "ps/storage/table_spec.h"
#include "ps/testing/increment_fixture.h"
#include "ps/testing/random_pushes.h"
#include "ps/testing/table_content.h"
#include "rpc/identity/worker_info.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint64_t kKeys = 300;

class IncrementTest : public IncrementFixture {};

TEST_F(IncrementTest, AChainOfThreeServersRestoresOntoOneTwoAndFive) {
  for (const int64_t rows_in_memory : {0, 30}) {
    std::filesystem::remove_all(path_ + "/snapshots");
    TableSpec spec = Spec("SparseAdam(lr=0.1)");
    if (rows_in_memory > 0) {
      spec.storage = TableStorage::RocksDb(rows_in_memory);
    }
    std::vector<std::unique_ptr<SparseTable>> tables;
    for (int64_t i = 0; i < 3; ++i) {
      SparseTableOptions options = Options(2);
      options.shards = *ShardsOf({i, 3}, spec.num_shards);
      tables.push_back(*SparseTable::Create(spec, options));
      // Servers that have held their shards for different times.
      clock_.AdvanceBy(absl::Seconds(100));
    }
    RandomPushes pushes(1, kKeys, kWidth);
    std::string base;
    for (const std::string name : {"full", "first", "second", "third"}) {
      for (int i = 0; i < 5; ++i) {
        const RandomPush push = pushes.Next();
        for (const auto& table : tables) {
          ASSERT_THAT(Push(*table, push), IsOk());
        }
      }
      // A save of the second server fails, and is tried again.
      if (name == "second") {
        const uint64_t id = last_id_;
        ASSERT_THAT(Save(*tables[0], "failed", base), IsOk());
        FailToSave(*tables[1], "failed", base);
        last_id_ = id + 10;
      }
      const uint64_t id = last_id_;
      for (const auto& table : tables) {
        last_id_ = id;
        ASSERT_THAT(Save(*table, name, base), IsOk());
      }
      base = name;
    }
    std::map<uint64_t, std::string> rows;
    for (const auto& table : tables) rows.merge(ContentOf(*table).rows);
    for (const int64_t servers : {1, 2, 3, 5}) {
      std::map<uint64_t, std::string> restored;
      for (int64_t i = 0; i < servers; ++i) {
        const auto table = Restore("third", {i, servers});
        ASSERT_THAT(table, IsOk());
        restored.merge(ContentOf(**table).rows);
      }
      EXPECT_EQ(restored, rows) << servers;
    }
    // Servers that have saved onto different bases.
    ++last_id_;
    const uint64_t id = last_id_;
    ASSERT_THAT(Save(*tables[0], "mixed", "third"), IsOk());
    for (const size_t other : {size_t{1}, size_t{2}}) {
      last_id_ = id;
      ASSERT_THAT(Save(*tables[other], "mixed", "second"), IsOk());
    }
    EXPECT_THAT(Restore("mixed"),
                StatusIs(absl::StatusCode::kDataLoss,
                         HasSubstr("are of different snapshots")));
  }
}

TEST_F(IncrementTest, ADamagedLinkIsNoticedAnywhere) {
  const auto table = *SparseTable::Create(
      [] {
        TableSpec spec = Spec("SGD(lr=1)");
        spec.retention.max_rows = 5;
        return spec;
      }(),
      Options(1));
  RandomPushes pushes(1, 60, kWidth);
  const std::vector<std::string> names = {"full", "first", "second", "third"};
  std::string base;
  for (const std::string& name : names) {
    for (int i = 0; i < 3; ++i) {
      RandomPush push = pushes.Next();
      push.id.client = rpc::Incarnation{1};
      ASSERT_THAT(Push(*table, push), IsOk());
    }
    ASSERT_THAT(Save(*table, name, base), IsOk());
    base = name;
  }
  const TableContent content = ContentOf(*table);
  for (const std::string& name : names) {
    const std::string path = FileOf(name);
    const std::string bytes = Read(path);
    for (size_t i = 0; i < bytes.size(); ++i) {
      WriteByte(path, i, static_cast<char>(bytes[i] ^ (1 << (i % 8))));
      ASSERT_THAT(
          Restore("third"),
          StatusIs(absl::StatusCode::kDataLoss,
                   AllOf(HasSubstr(path), HasSubstr("is damaged at byte"))))
          << i;
      WriteByte(path, i, bytes[i]);
    }
    Write(path, bytes.substr(0, bytes.size() - 1));
    EXPECT_THAT(Restore("third"),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path)));
    std::filesystem::remove(path);
    EXPECT_THAT(Restore("third"),
                StatusIs(absl::StatusCode::kNotFound,
                         HasSubstr(name == "third" ? "does not have" : path)));
    Write(path, bytes);
  }
  // In another order.
  const std::string first = Read(FileOf("first"));
  const std::string second = Read(FileOf("second"));
  Write(FileOf("first"), second);
  Write(FileOf("second"), first);
  EXPECT_THAT(Restore("third"), StatusIs(absl::StatusCode::kDataLoss,
                                         AllOf(HasSubstr("does not continue"),
                                               HasSubstr(FileOf("second")))));
  Write(FileOf("first"), first);
  Write(FileOf("second"), second);
  EXPECT_EQ(ContentOf(**Restore("third")), content);
  // The base was saved again.
  ASSERT_THAT(Save(*table, "full"), IsOk());
  EXPECT_THAT(Restore("third"), StatusIs(absl::StatusCode::kDataLoss,
                                         AllOf(HasSubstr(FileOf("first")),
                                               HasSubstr("does not continue"),
                                               HasSubstr(FileOf("full")))));
}

TEST_F(IncrementTest, ABaseThatIsNotKnownIsRefused) {
  const auto table = *SparseTable::Create(Spec("SGD(lr=1)"), Options());
  RandomPushes pushes(1, kKeys, kWidth);
  ASSERT_THAT(Push(*table, pushes.Next()), IsOk());
  EXPECT_THAT(Save(*table, "a", "none"),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr(FileOf("none")),
                             HasSubstr("save a snapshot without a base"))));
  EXPECT_THAT(Save(*table, "a", "../none"),
              StatusIs(absl::StatusCode::kInvalidArgument));
  ASSERT_THAT(Save(*table, "a"), IsOk());
  EXPECT_THAT(Save(*table, "a", "a"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("cannot be its own base")));
  // A table that was restored has another time.
  const auto restored = Restore("a");
  ASSERT_THAT(restored, IsOk());
  EXPECT_THAT(Save(**restored, "b", "a"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("save a snapshot without a base")));
  EXPECT_FALSE(std::filesystem::exists(FileOf("b")));
  ASSERT_THAT(Save(*table, "b", "a"), IsOk());
}

TEST_F(IncrementTest, TheLengthOfAChainIsLimited) {
  const auto table = *SparseTable::Create(Spec("SGD(lr=1)"), Options(1));
  RandomPushes pushes(1, kKeys, kWidth);
  ASSERT_THAT(Save(*table, "0"), IsOk());
  for (int64_t i = 1; i <= SnapshotBase::kMaxIncrements; ++i) {
    ASSERT_THAT(Push(*table, pushes.Next()), IsOk());
    ASSERT_THAT(Save(*table, absl::StrCat(i), absl::StrCat(i - 1)), IsOk());
  }
  const std::string last = absl::StrCat(SnapshotBase::kMaxIncrements);
  EXPECT_THAT(Save(*table, "next", last),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("save a snapshot without a base")));
  EXPECT_EQ(ContentOf(**directory_.Restore("a/t", last, {}, Options(1))),
            ContentOf(*table));
}

TEST_F(IncrementTest, AnIncrementAloneIsRefused) {
  const auto table = *SparseTable::Create(Spec("SGD(lr=1)"), Options());
  ASSERT_THAT(Save(*table, "a"), IsOk());
  ASSERT_THAT(Save(*table, "b", "a"), IsOk());
  const auto read = *SparseTable::Create(Spec("SGD(lr=1)"), Options());
  EXPECT_THAT(ReadTableFiles({{FileOf("b")}}, *read),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr(FileOf("b")),
                             HasSubstr("is an increment of snapshot \"a\""))));
}

// A bit per row between each two snapshots.
TEST_F(IncrementTest, ChangesTakeLittleMemory) {
  TableSpec spec{.name = "a/t", .width = 16};
  const auto table = *SparseTable::Create(spec, Options(1));
  std::vector<uint64_t> keys(200'000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  std::vector<float> rows(keys.size() * 16);
  ASSERT_THAT(table->Pull(keys, rows), IsOk());
  const size_t before = table->bytes();
  for (uint64_t id = 1; id <= 10; ++id) table->BeginChanges(id);
  EXPECT_LE(table->bytes() - before,
            keys.size() / 8 * RowChanges::kMaxCuts * 9 / 8);
}

}  // namespace
}  // namespace hawser::ps

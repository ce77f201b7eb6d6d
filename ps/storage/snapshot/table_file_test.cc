#include "ps/storage/snapshot/table_file.h"

#include <sys/resource.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_partition.h"
#include "ps/storage/table_spec.h"
#include "rpc/identity/worker_info.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

class TableFileTest : public testing::Test {
 protected:
  const TableSpec spec_{.name = "t",
                        .width = 3,
                        .rule = {"SparseAdam", {{"lr", 0.1}}},
                        .initializer = Initializer::Uniform(-1, 1)};

  std::string Path(const std::string& name) const {
    return absl::StrCat(
        testing::TempDir(), "/",
        testing::UnitTest::GetInstance()->current_test_info()->name(), "_",
        name);
  }

  std::unique_ptr<SparseTable> Table(ShardRange shards, int partitions = 3) {
    return *SparseTable::Create(
        spec_, {.num_partitions = partitions, .shards = shards});
  }

  static std::vector<uint64_t> Keys(size_t n) {
    std::vector<uint64_t> keys(n);
    for (size_t i = 0; i < n; ++i) keys[i] = i * 977;
    return keys;
  }

  // Trains the rows of the keys that `table` holds.
  static void Train(SparseTable& table, const std::vector<uint64_t>& keys,
                    int rounds) {
    for (int round = 0; round < rounds; ++round) {
      for (uint64_t key : keys) {
        const std::vector<float> gradient(3, static_cast<float>(round + 1));
        const absl::Status status = table.Push({&key, 1}, gradient, {0.1});
        ASSERT_TRUE(status.ok() ||
                    status.code() == absl::StatusCode::kFailedPrecondition);
      }
    }
  }

  static std::vector<float> Rows(SparseTable& table,
                                 const std::vector<uint64_t>& keys) {
    std::vector<float> rows(keys.size() * 3);
    EXPECT_THAT(table.Pull(keys, rows, MissingRows::kKeep), IsOk());
    return rows;
  }

  static std::string Read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void Write(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
};

TEST_F(TableFileTest, RestoredRowsContinueBitByBit) {
  const auto saved = Table({0, 1024});
  const std::vector<uint64_t> keys = Keys(1000);
  Train(*saved, keys, 3);
  const auto size = WriteTableFile(*saved, {.snapshot = 7}, Path("rows"));
  ASSERT_THAT(size, IsOk());
  EXPECT_EQ(size->rows, 1000);
  EXPECT_EQ(size->bytes,
            static_cast<int64_t>(std::filesystem::file_size(Path("rows"))));
  const auto info = ReadTableFileInfo(Path("rows"));
  ASSERT_THAT(info, IsOk());
  EXPECT_EQ(info->snapshot, 7u);
  EXPECT_EQ(info->spec, saved->spec());
  EXPECT_EQ(info->shards, (ShardRange{0, 1024}));

  const auto restored = Table({0, 1024}, 5);
  ASSERT_THAT(ReadTableFiles({{Path("rows")}}, *restored), IsOk());
  EXPECT_EQ(restored->num_rows(), 1000);
  // Moments and step counts, too.
  Train(*saved, keys, 2);
  Train(*restored, keys, 2);
  EXPECT_EQ(Rows(*restored, keys), Rows(*saved, keys));
}

TEST_F(TableFileTest, FilesOfThreeServersRestoreOntoOneTwoAndFive) {
  const std::vector<uint64_t> keys = Keys(1000);
  const auto whole = Table({0, 1024});
  Train(*whole, keys, 2);
  const std::vector<ShardRange> three = {{0, 341}, {341, 341}, {682, 342}};
  for (size_t i = 0; i < three.size(); ++i) {
    const auto part = Table(three[i]);
    Train(*part, keys, 2);
    ASSERT_THAT(WriteTableFile(*part, {.snapshot = 1}, Path(absl::StrCat(i))),
                IsOk());
  }
  Train(*whole, keys, 1);
  for (int64_t servers : {1, 2, 5}) {
    int64_t rows = 0;
    for (int64_t s = 0; s < servers; ++s) {
      const int64_t first = s * 1024 / servers;
      const auto part = Table({first, (s + 1) * 1024 / servers - first});
      for (size_t i = 0; i < three.size(); ++i) {
        ASSERT_THAT(ReadTableFiles({{Path(absl::StrCat(i))}}, *part), IsOk());
      }
      rows += part->num_rows();
      Train(*part, keys, 1);
      for (uint64_t key : keys) {
        std::vector<float> row(3);
        if (!part->Pull({&key, 1}, row).ok()) continue;
        ASSERT_EQ(row, Rows(*whole, {key}));
      }
    }
    EXPECT_EQ(rows, 1000) << servers;
  }
}

TEST_F(TableFileTest, RepeatedPushIsRecognisedAfterARestore) {
  const std::vector<uint64_t> key = {5};
  const std::vector<float> gradient = {1, 1, 1};
  const PushId id{rpc::Incarnation{9}, 4};
  const auto push = [&](SparseTable& table) {
    return (*table.SplitOrdered(key))[0].partition->Push(
        {key.data(), 1}, gradient.data(), {0.1}, id);
  };
  const auto saved = Table({0, 1024});
  ASSERT_THAT(push(*saved), IsOk());
  ASSERT_THAT(WriteTableFile(*saved, {.snapshot = 1}, Path("rows")), IsOk());
  const auto restored = Table({0, 1024});
  ASSERT_THAT(ReadTableFiles({{Path("rows")}}, *restored), IsOk());
  ASSERT_THAT(push(*restored), IsOk());
  EXPECT_EQ(Rows(*restored, key), Rows(*saved, key));
}

TEST_F(TableFileTest, EveryFlippedBitAndEveryShortenedFileIsNoticed) {
  const auto saved = Table({0, 1024});
  Train(*saved, Keys(4), 1);
  ASSERT_THAT(WriteTableFile(*saved, {.snapshot = 1}, Path("rows")), IsOk());
  const std::string bytes = Read(Path("rows"));
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 8)));
    Write(Path("damaged"), damaged);
    EXPECT_THAT(ReadTableFiles({{Path("damaged")}}, *Table({0, 1024})),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr(Path("damaged")),
                               HasSubstr("is damaged at byte"))))
        << i;
    Write(Path("short"), bytes.substr(0, i));
    EXPECT_THAT(ReadTableFiles({{Path("short")}}, *Table({0, 1024})),
                StatusIs(absl::StatusCode::kDataLoss))
        << i;
  }
  Write(Path("long"), bytes + "x");
  EXPECT_THAT(ReadTableFiles({{Path("long")}}, *Table({0, 1024})),
              StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(TableFileTest, AFailedWriteLeavesThePreviousFile) {
  const auto saved = Table({0, 1024});
  Train(*saved, Keys(100), 1);
  ASSERT_THAT(WriteTableFile(*saved, {.snapshot = 1}, Path("rows")), IsOk());
  const std::string before = Read(Path("rows"));
  Train(*saved, Keys(1000), 1);
  // The kernel refuses to write beyond this size, as on a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit old_limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  rlimit limit = old_limit;
  limit.rlim_cur = 4096;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const absl::Status status =
      WriteTableFile(*saved, {.snapshot = 2}, Path("rows")).status();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("rows"));
  EXPECT_EQ(Read(Path("rows")), before);
}

TEST_F(TableFileTest, FilesOfOtherTablesAreRefused) {
  const auto saved = Table({0, 1024});
  ASSERT_THAT(WriteTableFile(*saved, {.snapshot = 1}, Path("rows")), IsOk());
  TableSpec other = spec_;
  other.width = 4;
  EXPECT_THAT(ReadTableFiles({{Path("rows")}}, **SparseTable::Create(other)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("is of the table {")));
  EXPECT_THAT(ReadTableFileInfo(Path("missing")),
              StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace hawser::ps

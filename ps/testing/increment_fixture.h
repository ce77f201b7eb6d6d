// A server's table and its snapshots, for tests.

#ifndef HAWSER_PS_TESTING_INCREMENT_FIXTURE_H_
#define HAWSER_PS_TESTING_INCREMENT_FIXTURE_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/testing/simulated_clock.h"
#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "optim/rule_spec.h"
#include "ps/storage/disk/rocksdb_storage.h"
#include "ps/storage/push_log.h"
#include "ps/storage/snapshot/snapshot_directory.h"
#include "ps/storage/snapshot/table_file.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_partition.h"
#include "ps/storage/table_spec.h"
#include "ps/testing/random_pushes.h"

namespace hawser::ps {

class IncrementFixture : public testing::Test {
 protected:
  static constexpr size_t kWidth = 3;

  IncrementFixture() {
    std::filesystem::remove_all(path_);
    EXPECT_THAT(disk_.Open("w0"), async::IsOk());
  }
  ~IncrementFixture() override { std::filesystem::remove_all(path_); }

  static TableSpec Spec(const std::string& rule) {
    return {.name = "a/t",
            .width = kWidth,
            .rule = *optim::ParseRuleSpec(rule),
            .initializer = Initializer::Uniform(-1, 1)};
  }

  SparseTableOptions Options(int partitions = 0) {
    return {.num_partitions = partitions, .clock = &clock_, .disk = &disk_};
  }

  // Applies the part of the push whose keys `table` holds.
  static absl::Status Push(SparseTable& table, const RandomPush& push) {
    const LoggedPush all = push.push();
    for (size_t i = 0; i < push.keys.size(); ++i) {
      const auto range = table.SplitOrdered({&push.keys[i], 1});
      if (absl::IsFailedPrecondition(range.status())) continue;
      size_t end = i + 1;
      while (end < push.keys.size()) {
        const auto next = table.SplitOrdered({&push.keys[end], 1});
        if (!next.ok() || (*next)[0].partition != (*range)[0].partition) break;
        ++end;
      }
      LoggedPush part = all;
      part.keys = all.keys.subspan(i, end - i);
      part.values = all.values.subspan(i * kWidth, (end - i) * kWidth);
      const auto outcome = ApplyPush(*(*range)[0].partition, part);
      if (!outcome.ok()) return outcome.status();
      i = end - 1;
    }
    return absl::OkStatus();
  }

  // Saves an increment, or all rows if there is no base.
  absl::StatusOr<TableFileSize> Save(const SparseTable& table,
                                     const std::string& name,
                                     const std::string& base = "") {
    TableFileOptions options{.snapshot = ++last_id_};
    if (!base.empty()) {
      const absl::StatusOr<SnapshotBase> found = directory_.BaseOf(table, base);
      if (!found.ok()) return found.status();
      options.base = *found;
    }
    std::string path;
    return directory_.Save(table, name, options, path);
  }

  // Fails once the rows were copied.
  void FailToSave(const SparseTable& table, const std::string& name,
                  const std::string& base) {
    const std::string file = FileOf(name, table.shards());
    std::filesystem::create_directories(file + "/x");
    EXPECT_FALSE(Save(table, name, base).ok());
  }

  std::string FileOf(const std::string& name,
                     ShardRange shards = {0, 1024}) const {
    return absl::StrCat(path_, "/snapshots/", name, "/a+t.", shards.first, "-",
                        shards.count, ".rows");
  }

  absl::StatusOr<std::unique_ptr<SparseTable>> Restore(const std::string& name,
                                                       ServerPlace place = {}) {
    return directory_.Restore("a/t", name, place, Options(2));
  }

  static std::string Read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void Write(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }

  // Without cutting the file off first, after which a file system may write it
  // to the disk at once.
  static void WriteByte(const std::string& path, size_t position, char byte) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(position));
    file.put(byte);
  }

  const std::string path_ = absl::StrCat(
      testing::TempDir(), "/",
      testing::UnitTest::GetInstance()->current_test_info()->test_suite_name());
  const SnapshotDirectory directory_{path_ + "/snapshots"};
  RocksDbStorage disk_{path_ + "/disk"};
  async::SimulatedClock clock_;
  uint64_t last_id_ = 0;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_TESTING_INCREMENT_FIXTURE_H_

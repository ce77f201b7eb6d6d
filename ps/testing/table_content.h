// All that a snapshot has of a table, for tests.

#ifndef HAWSER_PS_TESTING_TABLE_CONTENT_H_
#define HAWSER_PS_TESTING_TABLE_CONTENT_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "ps/storage/retention/row_use.h"
#include "ps/storage/row_layout.h"
#include "ps/storage/snapshot/partition_copy.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_partition.h"
#include "rpc/identity/worker_info.h"

namespace hawser::ps {

struct TableContent {
  // By key: weights, state, number of updates and, with Retention options,
  // ages.
  std::map<uint64_t, std::string> rows;
  // By partition and client: the highest number, and the bits of the others.
  std::vector<std::map<uint64_t, std::pair<uint64_t, std::string>>> pushes;

  friend bool operator==(const TableContent&, const TableContent&) = default;
};

inline TableContent ContentOf(const SparseTable& table) {
  TableContent content;
  const RowLayout& layout = table.format().layout();
  const auto add = [&](uint64_t key, const std::byte* row) {
    std::string bytes(reinterpret_cast<const char*>(row), layout.bytes());
    auto* const copy = reinterpret_cast<std::byte*>(bytes.data());
    if (table.spec().retention.active()) {
      const RowUse use = layout.use(copy);
      layout.set_use(copy, RowUse(-use.Age(table.time()), use.pushes()));
    }
    EXPECT_TRUE(content.rows.emplace(key, std::move(bytes)).second)
        << key << " has two rows";
    return absl::OkStatus();
  };
  PartitionCopy copy;
  for (size_t p = 0; p < table.num_partitions(); ++p) {
    const auto pushes = table.partition(p).Export(copy);
    EXPECT_THAT(pushes, async::IsOk());
    copy.rows.ForEach([&](uint64_t key, const std::byte* row) {
      EXPECT_THAT(add(key, row), async::IsOk());
    });
    EXPECT_THAT(copy.ForEachRowOnDisk(layout, add), async::IsOk());
    auto& clients = content.pushes.emplace_back();
    for (const auto& [client, window] : pushes->clients) {
      clients[rpc::ToNumber(client)] = {window.highest(), window.Bits()};
    }
  }
  return content;
}

}  // namespace hawser::ps

#endif  // HAWSER_PS_TESTING_TABLE_CONTENT_H_

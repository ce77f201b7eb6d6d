#include "collectives/gloo/rank_record.h"

#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "store/hash/store.h"

namespace hawser::collectives {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The record of a rank of `size`, whose addresses begin with its number.
RankRecord RecordOf(char rank, size_t size) {
  RankRecord record{.machine = std::string("machine ") + rank};
  for (size_t other = 0; other < size; ++other) {
    const auto to = static_cast<char>('0' + other);
    record.addresses.push_back({.data = {rank, to, '\0'}, .control = {rank}});
  }
  return record;
}

TEST(RankRecordTest, AllRanksGetTheRecordsOfAll) {
  store::HashStore store;
  std::thread first([&store] {
    EXPECT_THAT(ExchangeRecords(store, 0, RecordOf('0', 2), absl::Seconds(20)),
                IsOk());
  });
  const auto records =
      ExchangeRecords(store, 1, RecordOf('1', 2), absl::Seconds(20));
  first.join();
  ASSERT_THAT(records, IsOk());
  ASSERT_EQ(records->size(), 2u);
  EXPECT_EQ((*records)[0].machine, "machine 0");
  EXPECT_THAT((*records)[0].addresses[1].data, ElementsAre('0', '1', '\0'));
  EXPECT_THAT((*records)[0].addresses[1].control, ElementsAre('0'));
  EXPECT_EQ((*records)[1].machine, "machine 1");
}

TEST(RankRecordTest, ARecordOfAnotherSizeIsRefused) {
  for (const size_t size : {1u, 3u}) {
    store::HashStore store;
    EXPECT_THAT(
        ExchangeRecords(store, 0, RecordOf('0', size), absl::ZeroDuration())
            .status(),
        testing::AnyOf(IsOk(), StatusIs(absl::StatusCode::kDeadlineExceeded)));
    EXPECT_THAT(
        ExchangeRecords(store, 1, RecordOf('1', 2), absl::Seconds(1)).status(),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr("rank 0 has joined a group of another size")));
  }
}

TEST(RankRecordTest, MalformedRecordsAreRefused) {
  for (const char* const text : {"", "\5abc", "\1m\1a\1b\1c\11", "\377"}) {
    store::HashStore store;
    ASSERT_THAT(store.Set("address/0", text), IsOk());
    EXPECT_THAT(
        ExchangeRecords(store, 1, RecordOf('1', 2), absl::Seconds(1)).status(),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("rank 0")));
  }
}

TEST(RankRecordTest, RanksThatDoNotComeAreNamed) {
  store::HashStore store;
  EXPECT_THAT(
      ExchangeRecords(store, 1, RecordOf('1', 3), absl::Milliseconds(20))
          .status(),
      StatusIs(absl::StatusCode::kDeadlineExceeded,
               HasSubstr("rank 0, 2 have not joined the group of 3")));
}

}  // namespace
}  // namespace hawser::collectives

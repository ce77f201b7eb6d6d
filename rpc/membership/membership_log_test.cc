#include "rpc/membership/membership_log.h"

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/testing/simulated_store_link.h"
#include "store/hash/store.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAreArray;

v1::MembershipEvent Event(uint64_t number) {
  return LeftEvent(Incarnation{number});
}

// Returns the incarnations in `events`, in order.
std::vector<uint64_t> Numbers(const std::vector<v1::MembershipEvent>& events) {
  std::vector<uint64_t> numbers;
  for (const v1::MembershipEvent& event : events) {
    numbers.push_back(event.left().incarnation());
  }
  return numbers;
}

class MembershipLogTest : public testing::Test {
 protected:
  void Append(MembershipLog& log, uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      ASSERT_THAT(log.Append(Event(i)), IsOk());
    }
  }
  std::vector<uint64_t> All() {
    MembershipLog log(&store_, "job");
    const auto events = log.ReadAll();
    EXPECT_THAT(events, IsOk());
    return events.ok() ? Numbers(*events) : std::vector<uint64_t>();
  }
  // Size of `segment` in bytes, including ignored events.
  size_t SizeOf(int segment) {
    return store_.Get(absl::StrCat("rpc/job/members/", segment), {})
        .value()
        .size();
  }

  store::HashStore store_;
  MembershipLog log_{&store_, "job"};
};

std::vector<uint64_t> Counted(uint64_t begin, uint64_t end) {
  std::vector<uint64_t> numbers;
  for (uint64_t i = begin; i < end; ++i) numbers.push_back(i);
  return numbers;
}

TEST_F(MembershipLogTest, ContinuesFromThePosition) {
  absl::StatusOr<MembershipLog::Part> part = log_.Read({});
  ASSERT_THAT(part, IsOk());
  EXPECT_THAT(part->events, IsEmpty());
  EXPECT_FALSE(part->more);
  Append(log_, 1, 3);
  part = log_.Read(part->end);
  ASSERT_THAT(part, IsOk());
  EXPECT_THAT(Numbers(part->events), ElementsAre(1, 2));
  EXPECT_FALSE(part->more);
  Append(log_, 3, 4);
  part = log_.Read(part->end);
  ASSERT_THAT(part, IsOk());
  EXPECT_THAT(Numbers(part->events), ElementsAre(3));
  part = log_.Read(part->end);
  ASSERT_THAT(part, IsOk());
  EXPECT_THAT(part->events, IsEmpty());
}

TEST_F(MembershipLogTest, ContinuesInTheNextSegment) {
  Append(log_, 0, 1000);
  MembershipLog::Position position;
  std::vector<uint64_t> numbers;
  bool more = true;
  while (more) {
    const absl::StatusOr<MembershipLog::Part> part = log_.Read(position);
    ASSERT_THAT(part, IsOk());
    for (const uint64_t number : Numbers(part->events)) {
      numbers.push_back(number);
    }
    position = part->end;
    more = part->more;
  }
  EXPECT_EQ(numbers, Counted(0, 1000));
  EXPECT_GT(position.segment, 5u);
  EXPECT_EQ(All(), numbers);
}

TEST_F(MembershipLogTest, LongLogIsReadBySegments) {
  Append(log_, 0, 10'000);
  int num_reads = 0;
  SimulatedStoreLink link(
      &store_, {.on_read = [&](const std::string&) { ++num_reads; }});
  MembershipLog counted(&link, "job");
  EXPECT_THAT(counted.ReadAll(), IsOkAndHolds(SizeIs(10'000)));
  // The events have 23 bytes each.
  EXPECT_LT(num_reads, 60);
}

// The writer did not know that the segment was full.
TEST_F(MembershipLogTest, EventAfterTheEndOfASegmentIsAppendedToTheNext) {
  MembershipLog slow(&store_, "job");
  Append(slow, 0, 1);
  Append(log_, 1, 300);
  ASSERT_THAT(slow.Append(Event(300)), IsOk());
  EXPECT_EQ(All(), Counted(0, 301));
}

TEST_F(MembershipLogTest, NewcomersAddNothingToFullSegments) {
  Append(log_, 0, 1000);
  const size_t before = SizeOf(1);
  MembershipLog newcomer(&store_, "job");
  ASSERT_THAT(newcomer.Append(Event(1000)), IsOk());
  EXPECT_EQ(SizeOf(1), before);
  EXPECT_EQ(All(), Counted(0, 1001));
}

TEST_F(MembershipLogTest, EventsOfAllWritersAppearOnceInTheOrderOfEach) {
  constexpr uint64_t kWriters = 4;
  constexpr uint64_t kEach = 500;
  std::vector<std::thread> writers;
  for (uint64_t writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&, writer] {
      MembershipLog log(&store_, "job");
      Append(log, writer * kEach, (writer + 1) * kEach);
    });
  }
  for (std::thread& writer : writers) writer.join();
  const std::vector<uint64_t> numbers = All();
  EXPECT_THAT(numbers, UnorderedElementsAreArray(Counted(0, kWriters * kEach)));
  std::vector<uint64_t> next(kWriters);
  for (const uint64_t number : numbers) {
    EXPECT_EQ(number % kEach, next[number / kEach]++);
  }
}

TEST_F(MembershipLogTest, EmptiedStoreIsDetected) {
  const auto emptied = [](int segment) {
    return StatusIs(absl::StatusCode::kDataLoss,
                    HasSubstr(absl::StrCat("'rpc/job/members/", segment, "'")));
  };
  Append(log_, 0, 1);
  const absl::StatusOr<MembershipLog::Part> part = log_.Read({});
  ASSERT_THAT(part, IsOk());
  ASSERT_THAT(store_.Delete("rpc/job/members/1").status(), IsOk());
  EXPECT_THAT(log_.Read(part->end), emptied(1));
  // A segment was read to its end and the next one is empty.
  EXPECT_THAT(log_.Read({.segment = 4, .offset = 0}), emptied(3));
  Append(log_, 0, 1);
  EXPECT_THAT(log_.Read({.segment = 2, .offset = 0}), emptied(1));
}

TEST_F(MembershipLogTest, MalformedEventIsAnErrorNamingTheKey) {
  Append(log_, 0, 1);
  const auto length = static_cast<int64_t>(SizeOf(1));
  // A length beyond the end, a malformed message, and an unterminated length.
  for (const char* bytes : {"\x05", "\x02\xff\xff", "\xff"}) {
    ASSERT_THAT(store_.Append("rpc/job/members/1", bytes).status(), IsOk());
    EXPECT_THAT(log_.ReadAll(),
                StatusIs(absl::StatusCode::kInternal,
                         AllOf(HasSubstr("'rpc/job/members/1'"),
                               HasSubstr(absl::StrCat("at byte ", length)))));
    ASSERT_THAT(store_.Delete("rpc/job/members/1").status(), IsOk());
    Append(log_, 0, 1);
  }
}

TEST_F(MembershipLogTest, ReportsOfDepartedWorkersAreIgnored) {
  const Incarnation a{1};
  const Incarnation b{2};
  const Incarnation c{3};
  const Incarnation d{4};
  EXPECT_THAT(DepartedIn({LostEvent(a, b, "test"), LostEvent(b, a, "test"),
                          LeftEvent(c), LostEvent(d, c, "test")}),
              testing::UnorderedElementsAre(a, c));
}

}  // namespace
}  // namespace hawser::rpc

#include "store/testing/conformance.h"

#include <atomic>
#include <limits>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"

namespace hawser::store {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::Field;
using ::testing::HasSubstr;

auto IsSwapped(const std::string& value) {
  return IsOkAndHolds(AllOf(Field(&CompareAndSetResult::value, value),
                            Field(&CompareAndSetResult::swapped, true)));
}
auto IsNotSwapped(const std::string& value) {
  return IsOkAndHolds(AllOf(Field(&CompareAndSetResult::value, value),
                            Field(&CompareAndSetResult::swapped, false)));
}

// Reads with timeout zero. Retries kUnavailable, which means that the server
// stalled for longer than one read may take.
absl::StatusOr<std::string> ReadNow(Store& store, const std::string& key) {
  while (true) {
    absl::StatusOr<std::string> value = store.Get(key, absl::ZeroDuration());
    if (!absl::IsUnavailable(value.status())) return value;
  }
}
absl::Status LookForAll(Store& store, const std::vector<std::string>& keys) {
  while (true) {
    absl::Status status = store.Wait(keys, absl::ZeroDuration());
    if (!absl::IsUnavailable(status)) return status;
  }
}

TEST_P(StoreConformanceTest, SetReplacesAndEveryClientSeesIt) {
  const std::shared_ptr<Store> other = data_->NewClient();
  EXPECT_THAT(store_->Set("k", "1"), IsOk());
  EXPECT_THAT(other->Get("k"), IsOkAndHolds("1"));
  EXPECT_THAT(other->Set("k", "22"), IsOk());
  EXPECT_THAT(store_->Get("k"), IsOkAndHolds("22"));
  EXPECT_THAT(store_->NumKeys(), IsOkAndHolds(1));
}

TEST_P(StoreConformanceTest, KeysAndValuesAreBytes) {
  const std::string key("a\0\n\xff/b", 6);
  const std::string value("\0\1\xfe\xff", 4);
  EXPECT_THAT(store_->Set(key, value), IsOk());
  EXPECT_THAT(store_->Get(key), IsOkAndHolds(value));
  EXPECT_THAT(store_->Set("empty", ""), IsOk());
  EXPECT_THAT(store_->Get("empty"), IsOkAndHolds(""));
  const std::string large(3000, 'x');
  EXPECT_THAT(store_->Set("large", large), IsOk());
  EXPECT_THAT(store_->Get("large"), IsOkAndHolds(large));
}

TEST_P(StoreConformanceTest, EveryChangeThatCreatesTheKeyWakesGet) {
  const std::shared_ptr<Store> other = data_->NewClient();
  const auto get_while = [&](const std::string& key, auto change) {
    std::thread waiter([&] { EXPECT_THAT(store_->Get(key), IsOk()) << key; });
    change(key);
    waiter.join();
  };
  get_while("set", [&](auto key) { EXPECT_THAT(other->Set(key, ""), IsOk()); });
  get_while("add", [&](auto key) { EXPECT_THAT(other->Add(key, 1), IsOk()); });
  get_while("append",
            [&](auto key) { EXPECT_THAT(other->Append(key, "x"), IsOk()); });
  get_while("compare", [&](auto key) {
    EXPECT_THAT(other->CompareAndSet(key, "", "x"), IsSwapped("x"));
  });
}

TEST_P(StoreConformanceTest, GetTimesOutNamingKeyTimeAndStore) {
  const absl::Time start = absl::Now();
  EXPECT_THAT(
      store_->Get("absent", absl::Milliseconds(120)),
      StatusIs(absl::StatusCode::kDeadlineExceeded,
               AllOf(HasSubstr("absent\""), HasSubstr("timed out after"),
                     HasSubstr("store"))));
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(119));
  EXPECT_THAT(store_->NumKeys(), IsOkAndHolds(0));
}

TEST_P(StoreConformanceTest, ZeroTimeoutDoesNotWait) {
  EXPECT_THAT(LookForAll(*store_, {"absent"}),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST_P(StoreConformanceTest, ZeroTimeoutReadsPresentKeys) {
  EXPECT_THAT(store_->Set("k", "v"), IsOk());
  EXPECT_THAT(ReadNow(*store_, "k"), IsOkAndHolds("v"));
  EXPECT_THAT(LookForAll(*store_, {"k"}), IsOk());
}

TEST_P(StoreConformanceTest, TheStoresOwnTimeoutIsTheDefault) {
  EXPECT_THAT(store_->SetTimeout(absl::Milliseconds(50)), IsOk());
  EXPECT_EQ(store_->timeout(), absl::Milliseconds(50));
  EXPECT_THAT(store_->Get("absent"),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(store_->SetTimeout(absl::InfiniteDuration()), IsOk());
  std::thread setter([&] { EXPECT_THAT(store_->Set("k", "v"), IsOk()); });
  EXPECT_THAT(store_->Get("k"), IsOkAndHolds("v"));
  setter.join();
}

TEST_P(StoreConformanceTest, NegativeTimeoutsAreRefused) {
  const auto refused =
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("negative"));
  EXPECT_THAT(store_->Set("k", "v"), IsOk());
  EXPECT_THAT(store_->Get("k", absl::Seconds(-1)), refused);
  EXPECT_THAT(
      store_->Wait(std::vector<std::string>{"k"}, absl::Nanoseconds(-1)),
      refused);
  EXPECT_THAT(store_->SetTimeout(-absl::InfiniteDuration()), refused);
}

TEST_P(StoreConformanceTest, AddCountsFromZeroAndIsText) {
  EXPECT_THAT(store_->Add("n", 5), IsOkAndHolds(5));
  EXPECT_THAT(store_->Add("n", -7), IsOkAndHolds(-2));
  EXPECT_THAT(store_->Get("n"), IsOkAndHolds("-2"));
  EXPECT_THAT(store_->Set("n", "40"), IsOk());
  EXPECT_THAT(store_->Add("n", 0), IsOkAndHolds(40));
}

TEST_P(StoreConformanceTest, AddRejectsValuesThatAreNotNumbers) {
  for (const std::string value : {"", "x", "1x", " 1", "1.5", "+"}) {
    EXPECT_THAT(store_->Set("n", value), IsOk());
    EXPECT_THAT(
        store_->Add("n", 1),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a number")))
        << value;
    EXPECT_THAT(store_->Get("n"), IsOkAndHolds(value));
  }
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(store_->Set("n", absl::StrCat(most)), IsOk());
  EXPECT_THAT(store_->Add("n", 1), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(store_->Get("n"), IsOkAndHolds(absl::StrCat(most)));
}

TEST_P(StoreConformanceTest, AddsOfManyClientsAllCount) {
  constexpr int kThreads = 4;
  constexpr int kAdds = 25;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([client = i % 2 == 0 ? store_ : data_->NewClient()] {
      for (int j = 0; j < kAdds; ++j) EXPECT_THAT(client->Add("n", 1), IsOk());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(store_->Get("n"), IsOkAndHolds(absl::StrCat(kThreads * kAdds)));
}

TEST_P(StoreConformanceTest, AppendGrowsTheValue) {
  EXPECT_THAT(store_->Append("k", "ab"), IsOkAndHolds(2));
  EXPECT_THAT(store_->Append("k", ""), IsOkAndHolds(2));
  EXPECT_THAT(store_->Append("k", "c"), IsOkAndHolds(3));
  EXPECT_THAT(store_->Get("k"), IsOkAndHolds("abc"));
}

TEST_P(StoreConformanceTest, CompareAndSetReturnsWhetherItSwapped) {
  EXPECT_THAT(store_->CompareAndSet("k", "old", "new"), IsNotSwapped(""));
  EXPECT_THAT(store_->Check(std::vector<std::string>{"k"}),
              IsOkAndHolds(false));
  EXPECT_THAT(store_->CompareAndSet("k", "", "a"), IsSwapped("a"));
  EXPECT_THAT(store_->CompareAndSet("k", "", "b"), IsNotSwapped("a"));
  EXPECT_THAT(store_->CompareAndSet("k", "a", "a"), IsSwapped("a"));
  EXPECT_THAT(store_->CompareAndSet("k", "x", "a"), IsNotSwapped("a"));
  EXPECT_THAT(store_->CompareAndSet("k", "a", ""), IsSwapped(""));
  // A key with an empty value matches the empty expectation.
  EXPECT_THAT(store_->CompareAndSet("k", "", "c"), IsSwapped("c"));
}

TEST_P(StoreConformanceTest, OneOfConcurrentCompareAndSetsWins) {
  std::atomic<int> winners = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i, client = data_->NewClient()] {
      const auto result =
          client->CompareAndSet("leader", "", absl::StrCat("w", i));
      ASSERT_THAT(result, IsOk());
      winners += result->swapped;
      EXPECT_THAT(client->Get("leader"), IsOkAndHolds(result->value));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(winners, 1);
}

TEST_P(StoreConformanceTest, WaitNeedsAllKeys) {
  const std::vector<std::string> keys = {"a", "b", "c"};
  EXPECT_THAT(store_->Set("b", "1"), IsOk());
  EXPECT_THAT(store_->Wait(keys, absl::Milliseconds(20)),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("a\"")));
  std::thread waiter([&] { EXPECT_THAT(store_->Wait(keys), IsOk()); });
  const std::shared_ptr<Store> other = data_->NewClient();
  EXPECT_THAT(other->Set("c", "1"), IsOk());
  EXPECT_THAT(other->Set("a", "1"), IsOk());
  waiter.join();
  EXPECT_THAT(store_->Wait({}), IsOk());
}

TEST_P(StoreConformanceTest, TimedOutWaitNamesAKeyThatIsMissing) {
  const std::vector<std::string> keys = {"here", "gone"};
  EXPECT_THAT(store_->Set("here", "1"), IsOk());
  // If a store in another process does not reply in time, the error can only
  // name the first key.
  absl::Status status;
  for (absl::Duration timeout = absl::Milliseconds(20);
       timeout < absl::Seconds(20); timeout *= 2) {
    status = store_->Wait(keys, timeout);
    ASSERT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded));
    if (absl::StrContains(status.message(), "gone\"")) break;
  }
  EXPECT_THAT(status.message(), HasSubstr("gone\""));
}

TEST_P(StoreConformanceTest, CheckSeesWhetherAllArePresent) {
  EXPECT_THAT(store_->Set("a", ""), IsOk());
  EXPECT_THAT(store_->Check(std::vector<std::string>{"a"}), IsOkAndHolds(true));
  EXPECT_THAT(store_->Check(std::vector<std::string>{"a", "b"}),
              IsOkAndHolds(false));
  EXPECT_THAT(store_->Check({}), IsOkAndHolds(true));
}

TEST_P(StoreConformanceTest, DeletedKeysAreAbsent) {
  EXPECT_THAT(store_->Delete("k"), IsOkAndHolds(false));
  EXPECT_THAT(store_->Set("k", "v"), IsOk());
  EXPECT_THAT(store_->Set("l", "v"), IsOk());
  EXPECT_THAT(store_->NumKeys(), IsOkAndHolds(2));
  EXPECT_THAT(store_->Delete("k"), IsOkAndHolds(true));
  EXPECT_THAT(store_->Delete("k"), IsOkAndHolds(false));
  EXPECT_THAT(store_->NumKeys(), IsOkAndHolds(1));
  EXPECT_THAT(ReadNow(*store_, "k"),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(store_->Add("k", 1), IsOkAndHolds(1));
}

TEST_P(StoreConformanceTest, WaitingCallsDoNotBlockOtherCalls) {
  std::vector<absl::Notification> begun(3);
  std::vector<std::thread> waiters;
  for (absl::Notification& notification : begun) {
    waiters.emplace_back([&] {
      notification.Notify();
      EXPECT_THAT(store_->Get("gate", absl::Seconds(60)), IsOkAndHolds("open"));
    });
  }
  for (absl::Notification& notification : begun) {
    notification.WaitForNotification();
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(store_->Set(absl::StrCat("k", i), "v"), IsOk());
    EXPECT_THAT(store_->Get(absl::StrCat("k", i)), IsOkAndHolds("v"));
  }
  EXPECT_THAT(store_->Set("gate", "open"), IsOk());
  for (std::thread& waiter : waiters) waiter.join();
}

TEST_P(StoreConformanceTest, BadKeysAreRefusedBeforeTheyAreUsed) {
  const auto refused = StatusIs(absl::StatusCode::kInvalidArgument);
  const std::string longest(10000, 'k');
  for (const std::string& key : {std::string(), longest}) {
    EXPECT_THAT(store_->Set(key, "v"), refused);
    EXPECT_THAT(store_->Get(key), refused);
    EXPECT_THAT(store_->Add(key, 1), refused);
    EXPECT_THAT(store_->Append(key, "v"), refused);
    EXPECT_THAT(store_->CompareAndSet(key, "", "v"), refused);
    EXPECT_THAT(store_->Delete(key), refused);
    EXPECT_THAT(store_->Wait(std::vector<std::string>{"a", key}), refused);
    EXPECT_THAT(store_->Check(std::vector<std::string>{"a", key}), refused);
  }
  EXPECT_THAT(store_->NumKeys(), IsOkAndHolds(0));
}

}  // namespace
void ExpectCallsEndInTime(Store& store) {
  constexpr absl::Duration kTimeout = absl::Milliseconds(200);
  const std::string key = "k";
  const auto in_time = [](const absl::Status& status) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded,
                                 testing::AllOf(HasSubstr("\"k\""),
                                                HasSubstr("timed out after"))));
  };
  in_time(store.Get(key, kTimeout).status());
  in_time(store.Wait({&key, 1}, kTimeout));
  in_time(store.Check({&key, 1}, kTimeout).status());
  in_time(store.Set(key, "v", kTimeout));
  in_time(store.Add(key, 1, kTimeout).status());
  in_time(store.Append(key, "v", kTimeout).status());
  in_time(store.CompareAndSet(key, "", "v", kTimeout).status());
  in_time(store.Delete(key, kTimeout).status());
  EXPECT_THAT(store.NumKeys(kTimeout),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  const auto no_answer =
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("no reply"));
  EXPECT_THAT(store.Get(key, absl::ZeroDuration()), no_answer);
  EXPECT_THAT(store.Wait({&key, 1}, absl::ZeroDuration()), no_answer);
  EXPECT_THAT(store.Check({&key, 1}, absl::ZeroDuration()), no_answer);
}

}  // namespace hawser::store

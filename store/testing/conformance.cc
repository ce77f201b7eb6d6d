#include "store/testing/conformance.h"

#include <atomic>
#include <limits>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"

namespace hawser::store {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
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

// --- Leases. Stores may let a lease live longer while hardly any is renewed,
// so that "healthy" stands for the others of a job.

constexpr absl::Duration kLifetime = absl::Seconds(1);

TEST_P(StoreConformanceTest, EndedLeaseIsAbsent) {
  const std::shared_ptr<Store> other = data_->NewClient();
  EXPECT_THAT(other->SetLease("healthy", "", absl::Hours(1)), IsOk());
  EXPECT_THAT(store_->Set("dead", "1"), IsOk());
  EXPECT_THAT(other->SetLease("dead", "2", kLifetime), IsOk());
  EXPECT_THAT(other->CompareAndSet("dead", "1", "3"), IsNotSwapped("2"));
  EXPECT_THAT(store_->Get("dead"), IsOkAndHolds("2"));
  EXPECT_THAT(store_->WhenChanged({{"dead", std::nullopt}}).Wait(),
              IsOkAndHolds(ElementsAre("")));
  EXPECT_THAT(ReadNow(*store_, "dead"),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(store_->NumKeys(), IsOkAndHolds(1));
  EXPECT_THAT(store_->Delete("dead"), IsOkAndHolds(false));
  EXPECT_THAT(store_->CompareAndSet("dead", "", "back"), IsSwapped("back"));
}

TEST_P(StoreConformanceTest, RenewedLeaseDoesNotEnd) {
  constexpr absl::Duration kRenewed = absl::Seconds(3);
  EXPECT_THAT(store_->SetLease("k", "v", kRenewed), IsOk());
  const auto gone = store_->WhenChanged({{"k", std::nullopt}});
  for (int i = 0; i < 9; ++i) {
    EXPECT_THAT(gone.WaitFor(absl::Milliseconds(400)),
                StatusIs(absl::StatusCode::kDeadlineExceeded));
    // Renewals with and without a change of the value.
    EXPECT_THAT(store_->SetLease("k", i < 5 ? "v" : "w", kRenewed), IsOk());
  }
  EXPECT_THAT(ReadNow(*store_, "k"), IsOkAndHolds("w"));
  EXPECT_TRUE(gone.Cancel());
}

TEST_P(StoreConformanceTest, OtherChangesMakeALeasePermanent) {
  const std::shared_ptr<Store> other = data_->NewClient();
  EXPECT_THAT(store_->SetLease("healthy", "", absl::Hours(1)), IsOk());
  for (const std::string key : {"set", "add", "append", "swap", "again"}) {
    EXPECT_THAT(store_->SetLease(key, "1", kLifetime), IsOk());
  }
  EXPECT_THAT(other->Set("set", "1"), IsOk());
  EXPECT_THAT(other->Add("add", 1), IsOkAndHolds(2));
  EXPECT_THAT(other->Append("append", "2"), IsOkAndHolds(2));
  EXPECT_THAT(other->CompareAndSet("swap", "1", "2"), IsSwapped("2"));
  EXPECT_THAT(other->Delete("again"), IsOkAndHolds(true));
  EXPECT_THAT(other->Set("again", "2"), IsOk());
  // Ends no earlier than the others would have.
  EXPECT_THAT(store_->SetLease("last", "", kLifetime), IsOk());
  EXPECT_THAT(other->WhenChanged({{"last", std::nullopt}}).Wait(), IsOk());
  EXPECT_THAT(store_->Check(std::vector<std::string>{"set", "add", "append",
                                                     "swap", "again"}),
              IsOkAndHolds(true));
}

TEST_P(StoreConformanceTest, DeletedLeaseCanBeCreatedAgain) {
  EXPECT_THAT(store_->SetLease("k", "1", absl::Hours(1)), IsOk());
  EXPECT_THAT(store_->Delete("k"), IsOkAndHolds(true));
  EXPECT_THAT(ReadNow(*store_, "k"),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(store_->SetLease("k", "1", absl::Hours(1)), IsOk());
  EXPECT_THAT(store_->Get("k"), IsOkAndHolds("1"));
}

TEST_P(StoreConformanceTest, BadLeasesAreRefused) {
  const auto refused = StatusIs(absl::StatusCode::kInvalidArgument);
  for (const absl::Duration lifetime :
       {absl::ZeroDuration(), -kLifetime, absl::Milliseconds(99),
        absl::Hours(24) + absl::Milliseconds(1), absl::InfiniteDuration()}) {
    EXPECT_THAT(store_->SetLease("k", "v", lifetime), refused) << lifetime;
  }
  EXPECT_THAT(store_->SetLease("", "v", kLifetime), refused);
  EXPECT_THAT(store_->SetLease(std::string(10000, 'k'), "v", kLifetime),
              refused);
  EXPECT_THAT(store_->SetLease("k", "v", kLifetime, absl::Seconds(-1)),
              refused);
  EXPECT_THAT(store_->NumKeys(), IsOkAndHolds(0));
  EXPECT_THAT(store_->SetLease("k", "v", absl::Hours(24)), IsOk());
}

// --- Watches.

using Watch = async::Future<std::vector<std::string>>;

// The watch has not completed, and has had time to begin.
void ExpectWaiting(const Watch& watch) {
  EXPECT_THAT(watch.WaitFor(absl::Milliseconds(50)),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST_P(StoreConformanceTest, WatchCompletesIfTheKeyHasChangedAlready) {
  EXPECT_THAT(store_->Set("k", "v"), IsOk());
  EXPECT_THAT(store_->WhenChanged({{"k", "other"}}).Wait(),
              IsOkAndHolds(ElementsAre("v")));
  EXPECT_THAT(store_->WhenChanged({{"k", ""}}).Wait(),
              IsOkAndHolds(ElementsAre("v")));
  EXPECT_THAT(store_->WhenChanged({{"absent", "v"}, {"k", "v"}}).Wait(),
              IsOkAndHolds(ElementsAre("", "v")));
  EXPECT_THAT(store_->WhenChanged({{"k", "v"}, {"absent", {}}}).Wait(),
              IsOkAndHolds(ElementsAre("v", "")));
}

TEST_P(StoreConformanceTest, WatchSeesEveryKindOfChange) {
  const std::shared_ptr<Store> other = data_->NewClient();
  std::string known;
  const auto watch_while = [&](auto change) {
    const Watch watch = store_->WhenChanged({{"k", known}});
    ExpectWaiting(watch);
    EXPECT_THAT(change(), IsOk());
    const absl::StatusOr<std::vector<std::string>> values = watch.Wait();
    ASSERT_THAT(values, IsOk());
    known = values->front();
  };
  watch_while([&] { return other->Set("k", "1"); });
  EXPECT_EQ(known, "1");
  watch_while([&] { return other->Set("k", "2"); });
  EXPECT_EQ(known, "2");
  watch_while([&] { return other->Add("k", 5).status(); });
  EXPECT_EQ(known, "7");
  watch_while([&] { return other->Append("k", "x").status(); });
  EXPECT_EQ(known, "7x");
  watch_while([&] { return other->CompareAndSet("k", "7x", "y").status(); });
  EXPECT_EQ(known, "y");
  watch_while([&] { return other->SetLease("k", "z", absl::Hours(1)); });
  EXPECT_EQ(known, "z");
  watch_while([&] { return other->Delete("k").status(); });
  EXPECT_EQ(known, "");
}

TEST_P(StoreConformanceTest, WatchWithoutAValueAwaitsTheRemoval) {
  const std::shared_ptr<Store> other = data_->NewClient();
  EXPECT_THAT(store_->Set("k", "1"), IsOk());
  const Watch watch = store_->WhenChanged({{"k", std::nullopt}});
  ExpectWaiting(watch);
  EXPECT_THAT(other->Set("k", "2"), IsOk());
  EXPECT_THAT(other->Set("k", ""), IsOk());
  ExpectWaiting(watch);
  EXPECT_THAT(other->Delete("k"), IsOkAndHolds(true));
  EXPECT_THAT(watch.Wait(), IsOkAndHolds(ElementsAre("")));
}

TEST_P(StoreConformanceTest, WatchIgnoresOtherKeysAndEqualValues) {
  EXPECT_THAT(store_->Set("k", "v"), IsOk());
  const Watch watch = store_->WhenChanged({{"k", "v"}, {"absent", ""}});
  ExpectWaiting(watch);
  EXPECT_THAT(store_->Set("kk", "v"), IsOk());
  EXPECT_THAT(store_->Set("k", "v"), IsOk());
  EXPECT_THAT(store_->Set("absent", ""), IsOk());
  ExpectWaiting(watch);
  EXPECT_TRUE(watch.Cancel());
}

TEST_P(StoreConformanceTest, WatchReturnsTheValuesOfAllKeys) {
  const std::string binary("\0\xff", 2);
  EXPECT_THAT(store_->Set("a", "1"), IsOk());
  const Watch watch =
      store_->WhenChanged({{"a", "1"}, {binary, ""}, {"c", ""}, {"a", "1"}});
  ExpectWaiting(watch);
  EXPECT_THAT(store_->Set(binary, binary), IsOk());
  EXPECT_THAT(watch.Wait(), IsOkAndHolds(ElementsAre("1", binary, "", "1")));
}

TEST_P(StoreConformanceTest, ManyWatchesAtOnce) {
  std::vector<Watch> same;
  std::vector<Watch> own;
  for (int i = 0; i < 5; ++i) {
    same.push_back(store_->WhenChanged({{"k", ""}}));
    own.push_back(store_->WhenChanged({{absl::StrCat("k", i), ""}}));
  }
  EXPECT_THAT(store_->Set("k", "v"), IsOk());
  for (const Watch& watch : same) {
    EXPECT_THAT(watch.Wait(), IsOkAndHolds(ElementsAre("v")));
  }
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(own[i].ready());
    EXPECT_THAT(store_->Set(absl::StrCat("k", i), absl::StrCat(i)), IsOk());
    EXPECT_THAT(own[i].Wait(), IsOkAndHolds(ElementsAre(absl::StrCat(i))));
  }
}

TEST_P(StoreConformanceTest, CallbackOfAWatchMayUseTheStore) {
  absl::Notification called;
  store_->WhenChanged({{"k", ""}}).OnReady([&](const auto&) {
    EXPECT_THAT(store_->Set("seen", "yes"), IsOk());
    store_->WhenChanged({{"seen", ""}}).OnReady([&](const auto&) {
      called.Notify();
    });
  });
  EXPECT_THAT(store_->Set("k", "v"), IsOk());
  called.WaitForNotification();
}

TEST_P(StoreConformanceTest, CancelEndsAWatch) {
  const Watch begun = store_->WhenChanged({{"k", ""}});
  ExpectWaiting(begun);
  const Watch fresh = store_->WhenChanged({{"k", ""}});
  EXPECT_TRUE(begun.Cancel());
  EXPECT_TRUE(fresh.Cancel());
  EXPECT_THAT(begun.Wait(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(store_->Set("k", "v"), IsOk());
  EXPECT_THAT(store_->WhenChanged({{"k", ""}}).Wait(), IsOk());
}

TEST_P(StoreConformanceTest, BadWatchesAreRefused) {
  const auto refused = StatusIs(absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(store_->WhenChanged({}).Wait(), refused);
  EXPECT_THAT(store_->WhenChanged({{"k", ""}, {"", ""}}).Wait(), refused);
  EXPECT_THAT(store_->WhenChanged({{std::string(10000, 'k'), ""}}).Wait(),
              refused);
}

}  // namespace

void ExpectDestructionEndsWatches(std::shared_ptr<Store> store) {
  const Watch begun = store->WhenChanged({{"k", ""}});
  ExpectWaiting(begun);
  const Watch fresh = store->WhenChanged({{"k", ""}});
  store.reset();
  // It has waited for them.
  ASSERT_TRUE(begun.ready());
  ASSERT_TRUE(fresh.ready());
  EXPECT_THAT(begun.Wait(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(fresh.Wait(), StatusIs(absl::StatusCode::kCancelled));
}

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

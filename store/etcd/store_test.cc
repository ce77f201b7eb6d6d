#include "store/etcd/store.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/testing/tcp_proxy.h"
#include "proto/etcd.pb.h"
#include "store/etcd/client.h"
#include "store/testing/conformance.h"
#include "store/testing/server_process.h"

namespace hawser::store {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::unique_ptr<EtcdStore> MustConnect(EtcdStoreOptions options) {
  absl::StatusOr<std::unique_ptr<EtcdStore>> store =
      EtcdStore::Connect(std::move(options));
  EXPECT_THAT(store, IsOk());
  return store.ok() ? *std::move(store) : nullptr;
}

// One etcd for all tests of this binary; each test uses its own prefix.
internal::EtcdProcess& Etcd() {
  static internal::EtcdProcess* etcd = nullptr;
  class Ender final : public testing::Environment {
    void TearDown() override { delete etcd; }
  };
  if (etcd == nullptr) {
    etcd = new internal::EtcdProcess();
    testing::AddGlobalTestEnvironment(new Ender());
  }
  return *etcd;
}

std::string FreshPrefix() {
  static int count = 0;
  return absl::StrCat("job", ++count);
}

class EtcdUnderTest final : public StoreUnderTest {
 public:
  std::shared_ptr<Store> NewClient() override {
    return MustConnect({.address = Etcd().address(), .prefix = prefix_});
  }

 private:
  const std::string prefix_ = FreshPrefix();
};

INSTANTIATE_TEST_SUITE_P(Etcd, StoreConformanceTest,
                         testing::Values(ConformanceParam{
                             "Etcd", [] {
                               return std::make_unique<EtcdUnderTest>();
                             }}));

TEST(EtcdStoreTest, PrefixesAreSeparate) {
  const std::string prefix = FreshPrefix();
  const auto a = MustConnect({.address = Etcd().address(), .prefix = prefix});
  const auto b = MustConnect(
      {.address = Etcd().address(), .prefix = absl::StrCat(prefix, "b/")});
  EXPECT_THAT(a->Set("k", "v"), IsOk());
  EXPECT_THAT(b->NumKeys(), IsOkAndHolds(0));
  EXPECT_THAT(b->Check(std::vector<std::string>{"k"}), IsOkAndHolds(false));
}

TEST(EtcdStoreTest, ManyKeysAreSeenTogether) {
  const auto store =
      MustConnect({.address = Etcd().address(), .prefix = FreshPrefix()});
  std::vector<std::string> keys;
  for (int i = 0; i < 300; ++i) keys.push_back(absl::StrCat("k", i));
  std::thread waiter([&] { EXPECT_THAT(store->Wait(keys), IsOk()); });
  for (const std::string& key : keys) EXPECT_THAT(store->Set(key, ""), IsOk());
  waiter.join();
  EXPECT_THAT(store->Check(keys), IsOkAndHolds(true));
}

TEST(EtcdStoreTest, WrongOptionsAreRefused) {
  EXPECT_THAT(
      EtcdStore::Connect({.address = Etcd().address(), .prefix = "/"}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("prefix")));
  EXPECT_THAT(EtcdStore::Connect(
                  {.address = Etcd().address(), .timeout = absl::Seconds(-1)}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(EtcdStoreTest, UnreachableServerIsUnavailableNamingTheAddress) {
  EXPECT_THAT(EtcdStore::Connect({.address = "127.0.0.1:1",
                                  .timeout = absl::Milliseconds(200)}),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("127.0.0.1:1"), HasSubstr("etcd"))));
}

TEST(EtcdStoreTest, ValuesAboveTheLimitOfEtcdAreErrorsOfItsOwn) {
  const auto store =
      MustConnect({.address = Etcd().address(),
                   .prefix = FreshPrefix(),
                   .limits = {.max_value_bytes = size_t{4} << 20}});
  EXPECT_THAT(store->Set("k", std::string(1800000, 'x')),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("too large"), HasSubstr("etcd store"))));
}

TEST(EtcdStoreTest, ChangesWhoseRepliesWereLostAreAppliedOnce) {
  net::TcpProxy proxy(Etcd().port());
  const std::string prefix = FreshPrefix();
  const auto store =
      MustConnect({.address = proxy.address(), .prefix = prefix});
  const auto direct =
      MustConnect({.address = Etcd().address(), .prefix = prefix});
  EXPECT_THAT(store->Set("gone", "1"), IsOk());
  // The change is applied, but its reply and the connection are lost.
  const auto lose_reply = [&](const std::string& made, auto change) {
    proxy.Discard(net::TcpProxy::Direction::kToClient);
    std::thread changer(change);
    EXPECT_THAT(direct->Get(made, absl::Seconds(20)), IsOk());
    proxy.Reset();
    changer.join();
  };
  lose_reply("set", [&] { EXPECT_THAT(store->Set("set", "a"), IsOk()); });
  lose_reply("n", [&] { EXPECT_THAT(store->Add("n", 5), IsOkAndHolds(5)); });
  lose_reply("text", [&] {
    EXPECT_THAT(store->Append("text", "xy"), IsOkAndHolds(2));
  });
  lose_reply("won", [&] {
    const auto result = store->CompareAndSet("won", "", "me");
    ASSERT_THAT(result, IsOk());
    EXPECT_TRUE(result->swapped);
  });
  EXPECT_THAT(store->Get("n"), IsOkAndHolds("5"));
  EXPECT_THAT(store->Get("text"), IsOkAndHolds("xy"));
}

TEST(EtcdStoreTest, AttemptsAfterALaterChangeAreIgnored) {
  const std::string prefix = FreshPrefix();
  const auto store =
      MustConnect({.address = Etcd().address(), .prefix = prefix});
  ASSERT_THAT(store->Set("k", "1"), IsOk());
  // Makes the record of the last change look like that of a later one.
  internal::EtcdClient etcd(Etcd().address());
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(20);
  etcdserverpb::TxnRequest read;
  auto* const range = read.add_success()->mutable_request_range();
  range->set_key(prefix + "/changes/");
  range->set_range_end(prefix + "/changes0");
  const auto found = etcd.Transact(read, deadline);
  ASSERT_THAT(found, IsOk());
  ASSERT_EQ(found->responses(0).response_range().kvs_size(), 1);
  etcdserverpb::TxnRequest write;
  auto* const put = write.add_success()->mutable_request_put();
  put->set_key(found->responses(0).response_range().kvs(0).key());
  put->set_value("00000000000000000010 0");
  ASSERT_THAT(etcd.Transact(write, deadline), IsOk());

  EXPECT_THAT(store->Set("k", "2"), IsOk());
  EXPECT_THAT(store->Add("n", 1), IsOk());
  EXPECT_THAT(store->Delete("k"), IsOk());
  EXPECT_THAT(store->Get("k"), IsOkAndHolds("1"));
  EXPECT_THAT(store->NumKeys(), IsOkAndHolds(1));
}

TEST(EtcdStoreTest, WaitingOutlivesARestartOfEtcd) {
  internal::EtcdProcess etcd;
  net::TcpProxy proxy(etcd.port());
  const auto store = MustConnect({.address = proxy.address(), .prefix = "job"});
  EXPECT_THAT(store->Set("before", "1"), IsOk());
  std::thread waiter([&] {
    EXPECT_THAT(store->Get("gate", absl::Seconds(60)), IsOkAndHolds("open"));
  });
  etcd.Restart();
  proxy.SetServerPort(etcd.port());
  proxy.Reset();
  const auto other = MustConnect({.address = etcd.address(), .prefix = "job"});
  EXPECT_THAT(other->Get("before"), IsOkAndHolds("1"));
  EXPECT_THAT(other->Set("gate", "open"), IsOk());
  waiter.join();
}

TEST(EtcdStoreTest, RenewalsLeaveNoOldValuesBehind) {
  const std::string prefix = FreshPrefix();
  const auto store =
      MustConnect({.address = Etcd().address(), .prefix = prefix});
  internal::EtcdClient etcd(Etcd().address());
  const std::vector<std::string> keys = {prefix + "/data/k"};
  const auto revision = [&]() -> int64_t {
    const auto snapshot = etcd.ReadSnapshot(
        keys, /*keys_only=*/true,
        std::chrono::steady_clock::now() + std::chrono::seconds(20));
    EXPECT_THAT(snapshot, IsOk());
    return snapshot.ok() ? snapshot->revision : 0;
  };
  EXPECT_THAT(store->SetLease("k", "v", absl::Seconds(60)), IsOk());
  const int64_t before = revision();
  for (int i = 0; i < 5; ++i) {
    EXPECT_THAT(store->SetLease("k", "v", absl::Seconds(60)), IsOk());
  }
  EXPECT_EQ(revision(), before);
  // These need a change: the key is permanent, and the lease is another.
  EXPECT_THAT(store->Set("k", "v"), IsOk());
  EXPECT_THAT(store->SetLease("k", "v", absl::Seconds(60)), IsOk());
  EXPECT_EQ(revision(), before + 2);
  EXPECT_THAT(store->SetLease("k", "v", absl::Seconds(50)), IsOk());
  EXPECT_EQ(revision(), before + 3);
}

TEST(EtcdStoreTest, LeaseThatEndedIsBegunAnew) {
  const auto store =
      MustConnect({.address = Etcd().address(), .prefix = FreshPrefix()});
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(store->SetLease("k", "v", absl::Seconds(1)), IsOk());
    EXPECT_THAT(store->WhenChanged({{"k", std::nullopt}}).Wait(), IsOk());
  }
}

TEST(EtcdStoreTest, WatchOutlivesARestartOfEtcd) {
  internal::EtcdProcess etcd;
  net::TcpProxy proxy(etcd.port());
  const auto store = MustConnect({.address = proxy.address(), .prefix = "job"});
  const auto watch = store->WhenChanged({{"k", ""}});
  etcd.Restart();
  proxy.SetServerPort(etcd.port());
  proxy.Reset();
  const auto other = MustConnect({.address = etcd.address(), .prefix = "job"});
  EXPECT_THAT(other->Set("k", "v"), IsOk());
  EXPECT_THAT(watch.Wait(), IsOkAndHolds(testing::ElementsAre("v")));
}

TEST(EtcdStoreTest, DestructionEndsWatches) {
  ExpectDestructionEndsWatches(
      MustConnect({.address = Etcd().address(), .prefix = FreshPrefix()}));
  net::TcpProxy proxy(Etcd().port());
  auto store =
      MustConnect({.address = proxy.address(), .prefix = FreshPrefix()});
  proxy.SetServerPort(1);
  proxy.Reset();
  ExpectDestructionEndsWatches(std::move(store));
}

TEST(EtcdStoreTest, DeadConnectionEndsCallsInTime) {
  net::TcpProxy proxy(Etcd().port());
  const auto store =
      MustConnect({.address = proxy.address(), .prefix = FreshPrefix()});
  proxy.SetServerPort(1);
  proxy.Reset();
  ExpectCallsEndInTime(*store);
}

}  // namespace
}  // namespace hawser::store

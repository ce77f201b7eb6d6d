#include "store/prefix_store.h"

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "store/hash/store.h"
#include "store/testing/conformance.h"

namespace hawser::store {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

class PrefixUnderTest final : public StoreUnderTest {
 public:
  std::shared_ptr<Store> NewClient() override {
    return std::make_shared<PrefixStore>("job", base_);
  }

 private:
  const std::shared_ptr<Store> base_ = std::make_shared<HashStore>();
};

INSTANTIATE_TEST_SUITE_P(Prefix, StoreConformanceTest,
                         testing::Values(ConformanceParam{
                             "Prefix", [] {
                               return std::make_unique<PrefixUnderTest>();
                             }}));

TEST(PrefixStoreTest, KeysOfTheStoreBelowCarryThePrefix) {
  const auto base = std::make_shared<HashStore>();
  const auto a = std::make_shared<PrefixStore>("a", base);
  PrefixStore b("b", base);
  PrefixStore nested("c", a);
  EXPECT_THAT(a->Set("k", "1"), IsOk());
  EXPECT_THAT(b.Set("k", "2"), IsOk());
  EXPECT_THAT(nested.Set("k", "3"), IsOk());
  EXPECT_THAT(base->Get("a/k"), IsOkAndHolds("1"));
  EXPECT_THAT(base->Get("b/k"), IsOkAndHolds("2"));
  EXPECT_THAT(base->Get("a/c/k"), IsOkAndHolds("3"));
  EXPECT_THAT(b.NumKeys(), IsOkAndHolds(3));
}

TEST(PrefixStoreTest, ErrorsNameTheFullKey) {
  PrefixStore store("job", std::make_shared<HashStore>());
  EXPECT_THAT(store.Get("k", absl::ZeroDuration()),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("job/k"), HasSubstr("hash store"))));
}

TEST(PrefixStoreTest, PrefixCountsForTheLimit) {
  const auto base = std::make_shared<HashStore>(
      HashStoreOptions{.limits = {.max_key_bytes = 8}});
  PrefixStore store("12345", base);
  EXPECT_THAT(store.Set("ab", "v"), IsOk());
  EXPECT_THAT(store.Set("abc", "v"),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(PrefixStoreTest, HasATimeoutOfItsOwn) {
  const auto base = std::make_shared<HashStore>(
      HashStoreOptions{.timeout = absl::Seconds(7)});
  PrefixStore store("p", base);
  EXPECT_EQ(store.timeout(), absl::Seconds(7));
  EXPECT_THAT(store.SetTimeout(absl::ZeroDuration()), IsOk());
  EXPECT_EQ(base->timeout(), absl::Seconds(7));
  EXPECT_THAT(store.Get("k"), StatusIs(absl::StatusCode::kDeadlineExceeded));
}

}  // namespace
}  // namespace hawser::store

#include "store/hash/store.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "async/thread_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "store/hash/key_value_table.h"
#include "store/testing/conformance.h"

namespace hawser::store {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;

class HashUnderTest final : public StoreUnderTest {
 public:
  std::shared_ptr<Store> NewClient() override { return store_; }

 private:
  const std::shared_ptr<Store> store_ = std::make_shared<HashStore>();
};

INSTANTIATE_TEST_SUITE_P(Hash, StoreConformanceTest,
                         testing::Values(ConformanceParam{
                             "Hash", [] {
                               return std::make_unique<HashUnderTest>();
                             }}));

TEST(HashStoreTest, LimitsBoundValuesAndTheWhole) {
  HashStore store(
      {.limits = {.max_value_bytes = 10,
                  .max_total_bytes =
                      2 * internal::KeyValueTable::kKeyOverheadBytes + 25}});
  const std::string ten(10, 'x');
  EXPECT_THAT(store.Set("a", ten + "x"),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(store.Set("a", ten), IsOk());
  EXPECT_THAT(store.Append("a", "x"),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(store.Set("b", ten), IsOk());
  EXPECT_THAT(store.Set("c", ten),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(store.Set("b", ""), IsOk());
  EXPECT_THAT(store.Delete("b"), IsOkAndHolds(true));
  EXPECT_THAT(store.Set("c", ten), IsOk());
  EXPECT_THAT(store.Delete("a"), IsOkAndHolds(true));
  EXPECT_THAT(store.Set("b", ten), IsOk());
}

TEST(HashStoreTest, WaitingPoolThreadsAreReplaced) {
  HashStore store;
  async::ThreadPool pool({.num_threads = 1});
  async::Promise<void> got;
  pool.Post([&] { got.Set(store.Get("k").status()); });
  pool.Post([&] { EXPECT_THAT(store.Set("k", "v"), IsOk()); });
  EXPECT_THAT(got.future().Wait(), IsOk());
}

}  // namespace
}  // namespace hawser::store

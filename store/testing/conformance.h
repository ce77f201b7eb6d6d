#ifndef HAWSER_STORE_TESTING_CONFORMANCE_H_
#define HAWSER_STORE_TESTING_CONFORMANCE_H_

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "gtest/gtest.h"
#include "store/store.h"

namespace hawser::store {

// A new store that several clients share.
class StoreUnderTest {
 public:
  virtual ~StoreUnderTest() = default;
  // Returns another client, or the same one if there can only be one.
  virtual std::shared_ptr<Store> NewClient() = 0;
};

struct ConformanceParam {
  std::string name;
  std::function<std::unique_ptr<StoreUnderTest>()> create;
};
inline void PrintTo(const ConformanceParam& param, std::ostream* os) {
  *os << param.name;
}

// The contract of Store. A backend's test instantiates it:
//
//   INSTANTIATE_TEST_SUITE_P(
//       Hash, StoreConformanceTest,
//       testing::Values(ConformanceParam{"Hash", &MakeHash}));
//
// Values and keys of up to a few kilobytes must be within its limits, and a
// key of 10000 bytes above them.
class StoreConformanceTest : public testing::TestWithParam<ConformanceParam> {
 protected:
  StoreConformanceTest()
      : data_(GetParam().create()), store_(data_->NewClient()) {}

  const std::unique_ptr<StoreUnderTest> data_;
  const std::shared_ptr<Store> store_;
};

// Destroys the only reference to a client with watches in progress: checks that
// this ends them. The key "k" must be absent.
void ExpectDestructionEndsWatches(std::shared_ptr<Store> store);

// For a store whose server no longer replies: checks that every call ends in
// time, and that none reports a key as absent.
void ExpectCallsEndInTime(Store& store);

}  // namespace hawser::store

#endif  // HAWSER_STORE_TESTING_CONFORMANCE_H_

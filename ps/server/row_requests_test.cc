// Requests for rows as peers may send them.

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/ps.pb.h"
#include "ps/service_methods.h"
#include "ps/storage/key_hash.h"
#include "ps/storage/table_spec.h"
#include "ps/testing/table_test_fixture.h"
#include "tensor/dtype.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::hawser::tensor::DType;
using ::testing::HasSubstr;
using ::testing::Pair;

class RowRequestsTest : public TableTestFixture {};

struct BadRequest {
  absl::StatusCode code;
  std::string error;
  std::function<void(v1::PushRequest&, std::vector<Tensor>&)> change;
};

// Ordered keys of the first server.
std::vector<int64_t> TwentyKeys() {
  std::vector<int64_t> keys;
  for (int64_t key : OrderedKeysBelow(100)) {
    if (SplitHash(HashKey(static_cast<uint64_t>(key)), 1024).part < 341) {
      keys.push_back(key);
    }
  }
  keys.resize(20);
  return keys;
}

TEST_F(RowRequestsTest, BadPushesChangeNothing) {
  const Table table =
      Create({.name = "t", .width = 2, .rule = {"SGD", {{"lr", 1}}}});
  const std::vector<int64_t> keys = TwentyKeys();
  const auto swapped = [&] {
    std::vector<int64_t> changed = keys;
    std::swap(changed[3], changed[4]);
    return Keys(changed);
  };
  const auto repeated = [&] {
    std::vector<int64_t> changed = keys;
    changed[4] = changed[3];
    return Keys(changed);
  };
  const auto invalid = absl::StatusCode::kInvalidArgument;
  const std::vector<BadRequest> requests = {
      {absl::StatusCode::kNotFound, "no table \"x\"",
       [](auto& r, auto&) { r.set_table("x"); }},
      {invalid, "has 1 tensors; it needs 2",
       [](auto&, auto& t) { t.pop_back(); }},
      {invalid, "keys must be i64[n], not f32[20]",
       [](auto&, auto& t) { t[0] = Tensor::Zeros({20}); }},
      {invalid, "keys must be i64[n], not i64[4, 5]",
       [](auto&, auto& t) {
         t[0] = *t[0].Reshape({4, 5});
       }},
      {invalid, "is not in the order of the hashes",
       [&](auto&, auto& t) { t[0] = swapped(); }},
      {invalid, "repeats the one before",
       [&](auto&, auto& t) { t[0] = repeated(); }},
      {absl::StatusCode::kFailedPrecondition, "this server holds the shards",
       [&](auto&, auto& t) { t[0] = Keys(OrderedKeysBelow(20)); }},
      {invalid,
       "gradients must be f32, f16 or bf16 [20, 2], or u8 of this shape with "
       "scales f32[20], or f32[k] with positions i64[k], or parts f32[m] of "
       "40 elements in all, not f32[20, 3]",
       [](auto&, auto& t) {
         t[1] = Tensor::Ones({20, 3});
       }},
      {invalid, "not f32[30] and f32[9]",
       [](auto&, auto& t) {
         t[1] = Tensor::Ones({30});
         t.push_back(Tensor::Ones({9}));
       }},
      {invalid, "not f32[30] and f32[10] and f32[1]",
       [](auto&, auto& t) {
         t[1] = Tensor::Ones({30});
         t.push_back(Tensor::Ones({10}));
         t.push_back(Tensor::Ones({1}));
       }},
      {invalid, "not f32[30] and f32[5, 2]",
       [](auto&, auto& t) {
         t[1] = Tensor::Ones({30});
         t.push_back(Tensor::Ones({5, 2}));
       }},
      {invalid, "not f32[38] and f32[1] and f32[1] and f32[1] and 2 more",
       [](auto&, auto& t) {
         t[1] = Tensor::Ones({38});
         t.resize(7, Tensor::Ones({1}));
       }},
      {invalid, "not f64[20, 2]",
       [](auto&, auto& t) { t[1] = *t[1].To(DType::kF64); }},
      {invalid, "pushes count from 1",
       [](auto& r, auto&) { r.set_sequence(0); }},
      {invalid, "learning rate",
       [](auto& r, auto&) { r.set_learning_rate(-1); }},
      {absl::StatusCode::kResourceExhausted, "at most 1000 keys, not 1001",
       [](auto&, auto& t) {
         t = {Keys(OrderedKeysBelow(1001)), Tensor::Ones({1001, 2})};
       }},
  };
  for (const BadRequest& bad : requests) {
    v1::PushRequest request;
    request.set_table("t");
    request.set_sequence(100);
    std::vector<Tensor> tensors = {Keys(keys), Tensor::Ones({20, 2})};
    bad.change(request, tensors);
    EXPECT_THAT(Send(kPushMethod, request, tensors),
                StatusIs(bad.code, HasSubstr(bad.error)));
    EXPECT_EQ(Rows(table), 0) << bad.error;
  }
  // The same request without a change is applied, once.
  v1::PushRequest request;
  request.set_table("t");
  request.set_sequence(100);
  for (int repeat = 0; repeat < 2; ++repeat) {
    EXPECT_THAT(Send(kPushMethod, request, {Keys(keys), Tensor::Ones({20, 2})}),
                IsOk());
  }
  EXPECT_EQ(Pull(table, keys), std::vector<float>(40, -1));

  const v1::ListTablesReply list = List();
  EXPECT_THAT(list.refused(),
              testing::UnorderedElementsAre(Pair("NOT_FOUND", 1),
                                            Pair("INVALID_ARGUMENT", 13),
                                            Pair("FAILED_PRECONDITION", 1),
                                            Pair("RESOURCE_EXHAUSTED", 1)));
  ASSERT_EQ(list.tables_size(), 1);
  const v1::TableCounts& counts = list.tables(0).counts();
  EXPECT_EQ(counts.pushes_applied(), 1);
  EXPECT_EQ(counts.pushes_repeated(), 1);
  EXPECT_EQ(counts.keys_pushed(), 20);
  EXPECT_EQ(counts.bytes_pushed(), 20 * 2 * 4);
  EXPECT_EQ(counts.pulls(), 1);
  EXPECT_EQ(counts.keys_pulled(), 20);
  EXPECT_EQ(counts.bytes_pulled(), 20 * 2 * 4);
  EXPECT_EQ(job_.agent(1).DebugInfo()["ps.pushes_repeated"], "1");
}

TEST_F(RowRequestsTest, GradientsInPartsAreThoseOfTheRows) {
  const Table table =
      Create({.name = "t", .width = 3, .rule = {"SGD", {{"lr", 1}}}});
  const std::vector<int64_t> keys = TwentyKeys();
  constexpr int64_t kCount = 3 * 20;
  std::vector<float> expected;
  for (int64_t i = 0; i < kCount; ++i) {
    expected.push_back(static_cast<float>(-i));
  }
  v1::PushRequest request;
  request.set_table("t");
  request.set_sequence(1);
  std::vector<Tensor> tensors = {Keys(keys)};
  int64_t next = 0;
  for (const int64_t size :
       {int64_t{1}, int64_t{0}, int64_t{40}, kCount - 41}) {
    Tensor part = Tensor::Empty({size});
    for (int64_t i = 0; i < size; ++i) {
      part.data<float>()[i] = static_cast<float>(next++);
    }
    tensors.push_back(part);
  }
  EXPECT_THAT(Send(kPushMethod, request, tensors), IsOk());
  EXPECT_EQ(Pull(table, keys), expected);
  EXPECT_EQ(List().tables(0).counts().bytes_pushed(), kCount * 4);
}

TEST_F(RowRequestsTest, SixteenBitGradientsAreAccepted) {
  const Table table =
      Create({.name = "t", .width = 2, .rule = {"SGD", {{"lr", 1}}}});
  const std::vector<int64_t> key = {OrderedKeysBelow(100)[0]};
  uint64_t sequence = 1;
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    v1::PushRequest request;
    request.set_table("t");
    request.set_sequence(sequence++);
    EXPECT_THAT(Send(kPushMethod, request,
                     {Keys(key), *Tensor::Full({1, 2}, -1.5).To(dtype)}),
                IsOk());
  }
  EXPECT_EQ(Pull(table, key), (std::vector<float>{3, 3}));
}

TEST_F(RowRequestsTest, BadBagsChangeNothing) {
  const Table table = Create({.name = "t", .width = 2});
  const Tensor key = Keys({OrderedKeysBelow(100)[0]});
  const auto bag = [](int32_t number) {
    return Tensor::FromVector(std::vector<int32_t>{number}, {1});
  };
  v1::PullSumsRequest pull;
  pull.set_table("t");
  pull.set_num_bags(1);
  v1::PushSumsRequest push;
  push.set_table("t");
  push.set_sequence(1);
  const Tensor gradient = Tensor::Ones({1, 2});
  for (int32_t number : {-1, 1}) {
    EXPECT_THAT(Send(kPullSumsMethod, pull, {key, bag(number)}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("is not below 1")));
    EXPECT_THAT(Send(kPushSumsMethod, push, {key, bag(number), gradient}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("is not below 1")));
  }
  EXPECT_THAT(Send(kPullSumsMethod, pull, {key, key}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("bags must be i32[1], not i64[1]")));
  EXPECT_THAT(Send(kPushSumsMethod, push, {key, bag(0), Tensor::Ones({2})}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("gradients must be")));
  pull.set_num_bags(-1);
  EXPECT_THAT(Send(kPullSumsMethod, pull, {key, bag(0)}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a request for -1 bags")));
  pull.set_num_bags(int64_t{1} << 60);
  EXPECT_THAT(Send(kPullSumsMethod, pull, {key, bag(0)}),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(Rows(table), 0);
}

}  // namespace
}  // namespace hawser::ps

// Tables whose rows and gradients travel in fewer bytes.

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/ps.pb.h"
#include "ps/row_encoding.h"
#include "ps/service_methods.h"
#include "ps/storage/table_spec.h"
#include "ps/table.h"
#include "ps/testing/table_test_fixture.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

struct Case {
  RowEncoding encoding;
  // Relative to the largest number of a row.
  float error;
};

class TableEncodingTest : public TableTestFixture,
                          public testing::WithParamInterface<Case> {
 protected:
  TableSpec Spec(const std::string& name) const {
    return {.name = name,
            .width = 5,
            .rule = {"SGD", {{"lr", 1}}},
            .initializer = Initializer::Uniform(-1, 1),
            .seed = 3};
  }

  static void ExpectClose(const Tensor& rows, const Tensor& exact,
                          float bound) {
    ASSERT_EQ(rows.shape(), exact.shape());
    const std::vector<float> a = rows.ToVector<float>();
    const std::vector<float> b = exact.ToVector<float>();
    float largest = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      largest = std::max(largest, std::abs(a[i] - b[i]));
    }
    EXPECT_LE(largest, bound);
    // The encoding was used.
    EXPECT_GT(largest, 0);
  }
};

TEST_P(TableEncodingTest, RowsAndGradientsAreRounded) {
  const auto [encoding, error] = GetParam();
  const PullOptions pull = {.encoding = encoding};
  const PushOptions push = {.encoding = encoding};
  const Table table = Create(Spec("rounded"));
  const Table exact = Create(Spec("exact"));
  // Repeated keys as well.
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < 120; ++i) numbers.push_back(i % 90);
  const Tensor keys = Keys(numbers);
  const Tensor bags = *keys.Reshape({30, 4});
  const Tensor gradients = *exact.Pull(keys).Wait();
  const Tensor of_bags = *exact.PullSums(bags).Wait();

  ExpectClose(*table.Pull(keys, pull).Wait(), *exact.Pull(keys).Wait(), error);
  ExpectClose(*table.PullSums(bags, pull).Wait(), of_bags, 4 * error);
  ASSERT_THAT(table.Push(keys, gradients, push).Wait(), IsOk());
  ASSERT_THAT(exact.Push(keys, gradients).Wait(), IsOk());
  ExpectClose(*table.Pull(keys).Wait(), *exact.Pull(keys).Wait(), 2 * error);
  ExpectClose(*table.PushPull(keys, gradients, push).Wait(),
              *exact.PushPull(keys, gradients).Wait(), 7 * error);
  ASSERT_THAT(table.PushSums(bags, of_bags, push).Wait(), IsOk());
  ASSERT_THAT(exact.PushSums(bags, of_bags).Wait(), IsOk());
  ExpectClose(*table.Pull(keys).Wait(), *exact.Pull(keys).Wait(), 15 * error);
}

INSTANTIATE_TEST_SUITE_P(All, TableEncodingTest,
                         testing::Values(Case{RowEncoding::kF16, 1.0f / 2048},
                                         Case{RowEncoding::kBF16, 1.0f / 256},
                                         Case{RowEncoding::kI8, 1.0f / 254}));

class NonZeroTest : public TableTestFixture {};

TEST_F(NonZeroTest, GradientsOfMostlyZerosAreAppliedAsTheyAre) {
  const TableSpec spec = {.name = "t",
                          .width = 5,
                          .rule = {"Adagrad", {{"lr", 0.5}}},
                          .initializer = Initializer::Uniform(-1, 1)};
  const Table table = Create(spec);
  TableSpec other = spec;
  other.name = "u";
  const Table exact = Create(other);
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < 90; ++i) numbers.push_back(i);
  const Tensor keys = Keys(numbers);
  for (const int64_t step : {7, 31, 1000}) {
    std::vector<float> gradients(90 * 5);
    for (size_t i = 0; i < gradients.size(); i += step) gradients[i] = 1.5f;
    const Tensor dense = Tensor::FromVector(gradients, {90, 5});
    const auto rows =
        table.PushPull(keys, dense, {.encoding = RowEncoding::kNonZero}).Wait();
    ASSERT_THAT(rows, IsOk());
    EXPECT_EQ(rows->ToVector<float>(),
              exact.PushPull(keys, dense).Wait()->ToVector<float>());
  }
}

class BadEncodingTest : public TableTestFixture {};

TEST_F(BadEncodingTest, WrongPositionsChangeNothing) {
  const Table table = Create(
      {.name = "t", .width = 2, .rule = {"SGD", {{"lr", 1}}}, .num_shards = 3});
  // Of the first server.
  std::vector<int64_t> keys = OrderedKeysBelow(100);
  keys.resize(2);
  const std::vector<float> before = Pull(table, keys);
  v1::PushRequest push;
  push.set_table("t");
  push.set_sequence(1);
  for (const std::vector<int64_t>& positions :
       std::vector<std::vector<int64_t>>{
           {1, 1}, {2, 1}, {-1, 0}, {0, 4}, {0, int64_t{1} << 62}}) {
    EXPECT_THAT(Send(kPushMethod, push,
                     {Keys(keys), Tensor::Full({2}, 1),
                      Tensor::FromVector(positions, {2})}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("of a gradient is out of order")));
  }
  EXPECT_THAT(
      Send(kPushMethod, push,
           {Keys(keys), Tensor::Full({5}, 1),
            Tensor::FromVector(std::vector<int64_t>{0, 1, 2, 3, 4}, {5})}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("gradients must be")));
  EXPECT_EQ(Pull(table, keys), before);
  EXPECT_THAT(Send(kPushMethod, push,
                   {Keys(keys), Tensor::Full({1}, 1),
                    Tensor::FromVector(std::vector<int64_t>{3}, {1})}),
              IsOk());
  EXPECT_EQ(Pull(table, keys)[3], before[3] - 1);
}

TEST_F(BadEncodingTest, ChangesNothing) {
  const Table table = Create(
      {.name = "t", .width = 2, .rule = {"SGD", {{"lr", 1}}}, .num_shards = 3});
  // Of the first server.
  std::vector<int64_t> keys = OrderedKeysBelow(100);
  keys.resize(2);
  const std::vector<float> before = Pull(table, keys);
  const Tensor codes = Tensor::Zeros({2, 2}, {.dtype = tensor::DType::kU8});
  v1::PushRequest push;
  push.set_table("t");
  push.set_sequence(1);
  for (const std::vector<Tensor>& scales : std::vector<std::vector<Tensor>>{
           {}, {Tensor::Zeros({3})}, {codes}, {Tensor::Zeros({2}), codes}}) {
    std::vector<Tensor> tensors = {Keys(keys), codes};
    tensors.insert(tensors.end(), scales.begin(), scales.end());
    EXPECT_THAT(Send(kPushMethod, push, tensors),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
  push.set_encoding(static_cast<v1::RowEncoding>(9));
  EXPECT_THAT(Send(kPushMethod, push, {Keys(keys), Tensor::Zeros({2, 2})}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("an unknown encoding of rows: 9")));
  v1::PullRequest pull;
  pull.set_table("t");
  pull.set_encoding(static_cast<v1::RowEncoding>(9));
  EXPECT_THAT(Send(kPullMethod, pull, {Keys(keys)}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("an unknown encoding of rows: 9")));
  EXPECT_EQ(Pull(table, keys), before);
}

}  // namespace
}  // namespace hawser::ps

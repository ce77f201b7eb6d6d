#include "ps/storage/table_spec.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/dtype.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

TEST(TableSpecTest, DefaultsNeedOnlyNameAndWidth) {
  EXPECT_THAT(NormalizeTableSpec({.name = "users", .width = 16}), IsOk());
}

TEST(TableSpecTest, TheSameRuleInOtherWordsIsTheSameTable) {
  const TableSpec a{.name = "t",
                    .width = 1,
                    .rule = {"Adagrad", {{"lr", 0.1}, {"eps", 1e-10}}}};
  const TableSpec b{
      .name = "t", .width = 1, .rule = {"Adagrad", {{"lr", 0.1}}}};
  EXPECT_NE(a, b);
  EXPECT_EQ(*NormalizeTableSpec(a), *NormalizeTableSpec(b));
}

TEST(TableSpecTest, RetentionIsNormalized) {
  const auto spec =
      NormalizeTableSpec({.name = "t",
                          .width = 1,
                          .retention = {.admission_window = 1000,
                                        .ttl = absl::Milliseconds(1500)}});
  ASSERT_THAT(spec, IsOk());
  EXPECT_EQ(spec->retention.ttl, absl::Seconds(2));
  // Nothing depends on the window.
  EXPECT_EQ(spec->retention.admission_window, Retention().admission_window);
  EXPECT_FALSE(Retention().active());
}

struct Wrong {
  std::string error;
  std::function<void(TableSpec&)> change;
};

class WrongTableSpecTest : public testing::TestWithParam<Wrong> {};

TEST_P(WrongTableSpecTest, IsRefusedByName) {
  TableSpec spec{.name = "users", .width = 16};
  GetParam().change(spec);
  EXPECT_THAT(NormalizeTableSpec(spec),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(GetParam().error)));
}

INSTANTIATE_TEST_SUITE_P(
    TableSpecTest, WrongTableSpecTest,
    testing::Values(
        Wrong{"needs a name", [](TableSpec& s) { s.name = ""; }},
        Wrong{"needs a name", [](TableSpec& s) { s.name = "a b"; }},
        Wrong{"needs a name", [](TableSpec& s) { s.name.assign(201, 'a'); }},
        Wrong{"width must be", [](TableSpec& s) { s.width = 0; }},
        Wrong{"width must be", [](TableSpec& s) { s.width = 65537; }},
        Wrong{"stored as f32",
              [](TableSpec& s) { s.dtype = tensor::DType::kF64; }},
        Wrong{"number of shards", [](TableSpec& s) { s.num_shards = 0; }},
        Wrong{"number of shards", [](TableSpec& s) { s.num_shards = 65537; }},
        Wrong{"not finite",
              [](TableSpec& s) {
                s.initializer = Initializer::Constant(
                    std::numeric_limits<double>::quiet_NaN());
              }},
        Wrong{"from 2 to 1",
              [](TableSpec& s) { s.initializer = Initializer::Uniform(2, 1); }},
        Wrong{"standard deviation",
              [](TableSpec& s) { s.initializer = Initializer::Normal(0, -1); }},
        Wrong{"1 to 15 pushes, not 0",
              [](TableSpec& s) { s.retention.admission_pushes = 0; }},
        Wrong{"1 to 15 pushes, not 16",
              [](TableSpec& s) { s.retention.admission_pushes = 16; }},
        Wrong{"window of admission",
              [](TableSpec& s) { s.retention.admission_window = 15; }},
        Wrong{"window of admission",
              [](TableSpec& s) {
                s.retention.admission_window = (int64_t{1} << 28) + 1;
              }},
        Wrong{"TTL",
              [](TableSpec& s) { s.retention.ttl = absl::ZeroDuration(); }},
        Wrong{
            "TTL",
            [](TableSpec& s) { s.retention.ttl = -absl::InfiniteDuration(); }},
        Wrong{"TTL",
              [](TableSpec& s) {
                s.retention.ttl = absl::Hours(24 * 3650) + absl::Seconds(1);
              }},
        Wrong{"rows_in_memory is for",
              [](TableSpec& s) { s.storage.rows_in_memory = 1; }},
        Wrong{"rows in memory must be",
              [](TableSpec& s) { s.storage = TableStorage::RocksDb(0); }},
        Wrong{"rows in RocksDB have no retention",
              [](TableSpec& s) {
                s.storage = TableStorage::RocksDb(10);
                s.retention.max_rows = 10;
              }},
        Wrong{"of a dense table cannot be removed",
              [](TableSpec& s) {
                s.rule = {"SGD", {{"lr", 0.1}}};
                s.tensors = {{"a", {4}}};
                s.retention.max_rows = 10;
              }},
        Wrong{"number of rows",
              [](TableSpec& s) { s.retention.max_rows = -1; }},
        Wrong{"unknown update rule",
              [](TableSpec& s) { s.rule.name = "Newton"; }},
        Wrong{"cannot update rows",
              [](TableSpec& s) {
                s.rule = {"Adam", {{"lr", 0.1}}};
              }},
        Wrong{"LAMB(lr=0.1) cannot update tensors in chunks",
              [](TableSpec& s) {
                s.tensors = {{"w", {2, 3}}};
                s.rule = {"LAMB", {{"lr", 0.1}}};
              }},
        Wrong{"RowWiseAdagrad() cannot update tensors in chunks",
              [](TableSpec& s) {
                s.tensors = {{"w", {2, 3}}};
                s.rule = {"RowWiseAdagrad", {}};
              }},
        Wrong{"SparseAdam() cannot update tensors in chunks",
              [](TableSpec& s) {
                s.tensors = {{"w", {2, 3}}};
                s.rule = {"SparseAdam", {}};
              }},
        Wrong{"different names",
              [](TableSpec& s) {
                s.tensors = {{"w", {2, 3}}, {"w", {1}}};
              }},
        Wrong{"more than", [](TableSpec& s) {
                s.tensors = {{"w", {int64_t{1} << 39}},
                             {"v", {(int64_t{1} << 39) + 1}}};
              }}));

TEST(TableSpecTest, TensorsMayHaveARuleForWholeTensors) {
  EXPECT_THAT(NormalizeTableSpec({.name = "model",
                                  .width = 16,
                                  .rule = {"Adam", {{"lr", 0.1}}},
                                  .tensors = {{"w", {2, 3}}, {"b", {}}}}),
              IsOk());
}

}  // namespace
}  // namespace hawser::ps

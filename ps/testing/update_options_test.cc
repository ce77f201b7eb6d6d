// Rules of a program, schedules and key ranges, through logs, files and
// snapshots: the rows are bit-equal.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optim/make_update_rule.h"
#include "optim/rule_spec.h"
#include "optim/schedule_spec.h"
#include "optim/update_rule.h"
#include "proto/table.pb.h"
#include "proto/table_files.pb.h"
#include "ps/storage/disk/rocksdb_storage.h"
#include "ps/storage/key_hash.h"
#include "ps/storage/logged_table.h"
#include "ps/storage/push_log.h"
#include "ps/storage/record.h"
#include "ps/storage/recovery_directory.h"
#include "ps/storage/retention/row_use.h"
#include "ps/storage/row_layout.h"
#include "ps/storage/rows/push_rate.h"
#include "ps/storage/snapshot/table_file.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_codec.h"
#include "ps/storage/table_partition.h"
#include "ps/storage/table_spec.h"
#include "rpc/identity/worker_info.h"
#include "tensor/dtype.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr rpc::Incarnation kClient{7};
constexpr size_t kWidth = 3;

// Lion (Chen et al., 2023), with the largest gradient of each row and a number
// of updates: all kinds of state that a rule may have.
class TestRule final : public optim::UpdateRule {
 public:
  explicit TestRule(const optim::RuleSpec& spec)
      : UpdateRule(spec,
                   {{"momentum", 0.25}, {"largest", 1, true}, {"count", 0}},
                   optim::GradientKind::kDenseAndRows),
        beta_(*spec.Find("beta")) {}

  void Update(std::span<const optim::UpdateSpan> spans) const override {
    for (const optim::UpdateSpan& span : spans) {
      auto* const w = static_cast<float*>(span.parameter);
      const auto* const g = static_cast<const float*>(span.gradient);
      auto* const momentum = static_cast<float*>(span.slots[0]);
      auto* const largest = static_cast<float*>(span.slots[1]);
      auto* const count = static_cast<float*>(span.slots[2]);
      for (size_t i = 0; i < span.count; ++i) {
        momentum[i] = beta_ * momentum[i] + (1 - beta_) * g[i];
        *largest = std::max(*largest, std::abs(g[i]));
        count[i] += static_cast<float>(span.step);
        w[i] -= static_cast<float>(span.learning_rate) * momentum[i] / *largest;
      }
    }
  }

 private:
  const float beta_;
};

absl::StatusOr<std::unique_ptr<optim::UpdateRule>> MakeTestRule(
    const optim::RuleSpec& spec) {
  optim::RuleSpec all{"TestRule", {{"lr", 0.1}, {"beta", 0.5}}};
  for (const auto& [name, value] : spec.options) {
    if (!all.Find(name).has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("TestRule has no option ", name));
    }
    all.Set(name, value);
  }
  return std::make_unique<TestRule>(all);
}

struct Case {
  std::string name;
  TableSpec spec;
};

TableSpec SpecOf(tensor::DType dtype) {
  return {.name = "t",
          .width = kWidth,
          .dtype = dtype,
          .rule = {"TestRule", {{"beta", 0.75}}},
          .initializer = Initializer::Normal(0, 1),
          .seed = 3,
          .schedule = optim::ScheduleSpec::Linear({.total_steps = 5})
                          .Then(5, optim::ScheduleSpec::Cosine({.period = 30})),
          .key_ranges = {
              {.first = 20,
               .last = 39,
               .rule = optim::RuleSpec{"TestRule", {{"lr", 0.3}}},
               .schedule = optim::ScheduleSpec::Exponential({.gamma = 0.99})},
              {.first = 40,
               .last = 59,
               .rule = optim::RuleSpec{"TestRule", {{"beta", 0.25}}},
               .initializer = Initializer::Uniform(2, 3)}}};
}

std::vector<Case> Cases() {
  TableSpec retention = SpecOf(tensor::DType::kF32);
  retention.retention = {.ttl = absl::Hours(1), .max_rows = 1000};
  TableSpec disk = SpecOf(tensor::DType::kF32);
  disk.storage = TableStorage::RocksDb(10);
  return {{"f32", SpecOf(tensor::DType::kF32)},
          {"f16", SpecOf(tensor::DType::kF16)},
          {"bf16", SpecOf(tensor::DType::kBF16)},
          {"retention", retention},
          {"rocksdb", disk}};
}

class UpdateOptionsTest : public testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() {
    ASSERT_THAT(optim::RegisterUpdateRule("TestRule", MakeTestRule), IsOk());
  }

  void SetUp() override {
    std::filesystem::remove_all(path_);
    std::filesystem::remove_all(absl::StrCat(path_, ".disk"));
    ASSERT_THAT(directory_.Open(), IsOk());
    ASSERT_THAT(disk_.Open("w"), IsOk());
  }

  SparseTableOptions Options(int num_partitions = 3) {
    return {.num_partitions = num_partitions, .disk = &disk_};
  }

  // The push with this number, which depends on nothing else.
  struct Push {
    std::vector<uint64_t> keys = {};
    std::vector<float> gradients = {};
    PushRate rate = {};
  };
  static Push PushOf(uint64_t sequence) {
    std::mt19937_64 random(sequence);
    std::map<uint64_t, uint64_t> by_hash;
    for (int i = 0; i < 30; ++i) {
      const uint64_t key = random() % 80;
      by_hash[HashKey(key)] = key;
    }
    Push push;
    for (const auto& [hash, key] : by_hash) push.keys.push_back(key);
    for (size_t i = 0; i < push.keys.size() * kWidth; ++i) {
      push.gradients.push_back(static_cast<float>(random() % 1000) / 300 - 1);
    }
    if (sequence % 2 == 0) push.rate.step = static_cast<int64_t>(sequence);
    if (sequence % 3 == 0) push.rate.learning_rate = 0.2;
    return push;
  }

  static void Apply(uint64_t sequence, LoggedTable& table) {
    const Push push = PushOf(sequence);
    EXPECT_THAT(table.Push({.id = {kClient, sequence},
                            .rate = push.rate,
                            .keys = push.keys,
                            .values = push.gradients},
                           *table.table().SplitOrdered(push.keys)),
                IsOk());
  }
  static void Apply(uint64_t sequence, SparseTable& table) {
    const Push push = PushOf(sequence);
    EXPECT_THAT(table.Push(push.keys, push.gradients, push.rate), IsOk());
  }

  // All rows with their state, by key, except for when they were used.
  static std::map<uint64_t, std::string> Rows(SparseTable& table) {
    const RowLayout& layout = table.format().layout();
    std::map<uint64_t, std::string> rows;
    for (uint64_t key = 0; key < 80; ++key) {
      std::vector<std::byte> row(layout.bytes());
      EXPECT_THAT(table.PullWholeRows({&key, 1}, row, MissingRows::kKeep),
                  IsOk());
      layout.set_use(row.data(), RowUse());
      rows[key] =
          std::string(reinterpret_cast<const char*>(row.data()), row.size());
    }
    return rows;
  }

  const std::string path_ = absl::StrCat(testing::TempDir(), "/update_options");
  const RecoveryDirectory directory_{path_};
  RocksDbStorage disk_{absl::StrCat(path_, ".disk")};
};

TEST_P(UpdateOptionsTest, RecoveredAndRestoredRowsAreBitEqual) {
  const TableSpec& spec = GetParam().spec;
  const auto expected =
      *SparseTable::Create(spec, {.num_partitions = 7, .disk = &disk_});
  const std::map<uint64_t, std::string> untrained = Rows(*expected);
  {
    const auto table =
        *LoggedTable::Create(*SparseTable::Create(spec, Options()), &directory_,
                             PushLogging::kWrite);
    for (uint64_t i = 1; i <= 20; ++i) Apply(i, *table);
    // The rest is in a log after these rows.
    ASSERT_THAT(table->Save([&](const SparseTable& rows, int64_t log,
                                std::string& path) {
      path = absl::StrCat(path_, "/saved");
      return WriteTableFile(rows, {.snapshot = 1, .log = log}, path);
    }),
                IsOk());
    for (uint64_t i = 21; i <= 40; ++i) Apply(i, *table);
  }
  for (uint64_t i = 1; i <= 40; ++i) Apply(i, *expected);
  EXPECT_NE(Rows(*expected), untrained);

  const auto recovered =
      LoggedTable::Recover(directory_, PushLogging::kWrite, Options());
  ASSERT_THAT(recovered, IsOk());
  ASSERT_EQ(recovered->size(), 1);
  SparseTable& table = (*recovered)[0]->table();
  EXPECT_EQ(table.spec(), expected->spec());
  EXPECT_EQ(Rows(table), Rows(*expected));

  // Onto three servers, each with some shards, which train further.
  const std::string file = absl::StrCat(path_, "/restored");
  ASSERT_THAT(WriteTableFile(table, {.snapshot = 2}, file), IsOk());
  for (uint64_t i = 41; i <= 60; ++i) Apply(i, *expected);
  const std::map<uint64_t, std::string> rows = Rows(*expected);
  for (int64_t server = 0; server < 3; ++server) {
    SparseTableOptions options = Options(2);
    options.shards = *ShardsOf({server, 3}, spec.num_shards);
    const auto part =
        *SparseTable::Create(ReadTableFileInfo(file)->spec, options);
    ASSERT_THAT(ReadTableFiles({&file, 1}, *part), IsOk());
    for (uint64_t i = 41; i <= 60; ++i) {
      Push push = PushOf(i);
      Push here{.rate = push.rate};
      for (size_t k = 0; k < push.keys.size(); ++k) {
        if (!part->SplitOrdered({&push.keys[k], 1}).ok()) continue;
        here.keys.push_back(push.keys[k]);
        here.gradients.insert(here.gradients.end(), &push.gradients[k * kWidth],
                              &push.gradients[k * kWidth] + kWidth);
      }
      ASSERT_THAT(part->Push(here.keys, here.gradients, here.rate), IsOk());
    }
    for (const auto& [key, row] : rows) {
      if (!part->SplitOrdered({&key, 1}).ok()) continue;
      std::vector<std::byte> found(part->format().layout().bytes());
      ASSERT_THAT(part->PullWholeRows({&key, 1}, found, MissingRows::kKeep),
                  IsOk());
      part->format().layout().set_use(found.data(), RowUse());
      EXPECT_EQ(std::memcmp(found.data(), row.data(), row.size()), 0) << key;
    }
  }
}

TEST_P(UpdateOptionsTest, TheDescriptionIsTheSameAfterItsMessage) {
  const TableSpec spec = *NormalizeTableSpec(GetParam().spec);
  v1::TableDescription message;
  ASSERT_TRUE(message.ParseFromString(ToProto(spec).SerializeAsString()));
  const absl::StatusOr<TableSpec> read = FromProto(message);
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(*read, spec);
  EXPECT_EQ(read->key_ranges.size(), 2);
}

INSTANTIATE_TEST_SUITE_P(Tables, UpdateOptionsTest, testing::ValuesIn(Cases()),
                         [](const auto& tested) { return tested.param.name; });

// As by a server that was built without a rule of its earlier version.
TEST(MissingRuleTest, TablesWithARuleThatIsNotRegisteredAreRefused) {
  TableSpec spec{.name = "users", .width = 2, .rule = {"Lion", {{"lr", 1}}}};
  const auto names_rule =
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("table \"users\": unknown update rule \"Lion\""),
                     HasSubstr("optim::RegisterUpdateRule")));
  EXPECT_THAT(SparseTable::Create(spec), names_rule);

  const std::string path = absl::StrCat(testing::TempDir(), "/missing_rule");
  std::filesystem::remove_all(path);
  const RecoveryDirectory directory(path);
  ASSERT_THAT(directory.Open(), IsOk());
  TableFileInfo info{.spec = spec, .shards = {0, 1024}, .num_partitions = 1};
  const std::string header = ToProto(info).SerializeAsString();
  const std::span<const std::byte> body[] = {
      std::as_bytes(std::span(header.data(), header.size()))};
  const RecordPrefix prefix = MakeRecordPrefix(RecordKind::kHeader, body);
  std::ofstream(directory.RowsPath("users", 1), std::ios::binary)
      << "HWSRTBL1"
      << std::string(reinterpret_cast<const char*>(prefix.data()),
                     prefix.size())
      << header;
  EXPECT_THAT(LoggedTable::Recover(directory, PushLogging::kWrite), names_rule);
}

}  // namespace
}  // namespace hawser::ps

// A job whose worker 0 uses tables on the workers 1 to 3.

#ifndef HAWSER_PS_TESTING_TABLE_TEST_FIXTURE_H_
#define HAWSER_PS_TESTING_TABLE_TEST_FIXTURE_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "proto/ps.pb.h"
#include "ps/service_methods.h"
#include "ps/storage/key_hash.h"
#include "ps/storage/table_spec.h"
#include "ps/table.h"
#include "ps/table_service.h"
#include "rpc/agent/service_host.h"
#include "rpc/testing/agent_test_fixture.h"
#include "tensor/tensor.h"

namespace hawser::ps {

// i64[n].
inline Tensor Keys(const std::vector<int64_t>& keys) {
  return Tensor::FromVector(keys, {static_cast<int64_t>(keys.size())});
}

// Keys 0 to n - 1 in the order of their hashes.
inline std::vector<int64_t> OrderedKeysBelow(int64_t n) {
  std::vector<int64_t> keys(n);
  for (int64_t i = 0; i < n; ++i) keys[i] = i;
  std::sort(keys.begin(), keys.end(), [](int64_t a, int64_t b) {
    return HashKey(static_cast<uint64_t>(a)) <
           HashKey(static_cast<uint64_t>(b));
  });
  return keys;
}

class TableTestFixture : public testing::Test {
 protected:
  void SetUp() override {
    job_.StartAll(4, [](int, rpc::AgentOptions& options) {
      options.services.push_back(std::make_unique<TableService>(
          TableServiceOptions{.limits = {.max_tables = 2, .max_keys = 1000},
                              .snapshot_directory = Snapshots()}));
    });
  }

  static std::vector<std::string> Servers() { return {"w1", "w2", "w3"}; }

  // Shared by the workers of a test.
  static std::string Snapshots() {
    return testing::TempDir() + "/" +
           testing::UnitTest::GetInstance()->current_test_info()->name();
  }

  Table Create(const TableSpec& spec) {
    absl::StatusOr<Table> table = Table::Create(job_.agent(0), spec, Servers());
    EXPECT_THAT(table, async::IsOk());
    return *std::move(table);
  }

  std::vector<float> Pull(const Table& table, const std::vector<int64_t>& keys,
                          const PullOptions& options = {}) {
    absl::StatusOr<Tensor> rows = table.Pull(Keys(keys), options).Wait();
    EXPECT_THAT(rows, async::IsOk());
    return rows.ok() ? rows->ToVector<float>() : std::vector<float>();
  }

  int64_t Rows(const Table& table) { return table.Size().Wait()->rows; }

  // Sends a pull or push as it is, from worker 0 to worker 1.
  template <class Method, class Request>
  absl::Status Send(const Method& method, const Request& request,
                    std::vector<Tensor> tensors) {
    return job_.agent(0)
        .host()
        .CallMethod("w1", method, request, std::move(tensors))
        .Wait()
        .status();
  }

  // The tables of worker 1.
  v1::ListTablesReply List() {
    const auto reply =
        job_.agent(0).host().CallMethod("w1", kListTablesMethod, {}).Wait();
    EXPECT_THAT(reply, async::IsOk());
    return reply.ok() ? reply->body : v1::ListTablesReply();
  }

  rpc::TestJob job_;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_TESTING_TABLE_TEST_FIXTURE_H_

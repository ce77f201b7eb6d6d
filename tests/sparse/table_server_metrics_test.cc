// The pages for monitoring of a `hawser ps` process.

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/worker.h"
#include "launch/worker_options.h"
#include "nlohmann/json.hpp"
#include "ps/storage/table_spec.h"
#include "ps/table.h"
#include "ps/table_service.h"
#include "ps/worker_clock.h"
#include "store/grpc/server.h"
#include "tensor/tensor.h"
#include "tests/program.h"
#include "tests/sparse/metrics_page.h"

namespace hawser::tests {
namespace {

using ::hawser::async::IsOk;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// The names of metrics in expressions of Prometheus' language.
std::set<std::string> MetricsIn(const std::string& expressions) {
  static const auto* const kOthers =
      new std::set<std::string>{"by",
                                "histogram_quantile",
                                "instance",
                                "le",
                                "max",
                                "rate",
                                "sum",
                                "table",
                                "grpc_method",
                                "reason",
                                "resource_exhausted"};
  std::set<std::string> names;
  std::string name;
  for (const char c : expressions + "\n") {
    if (absl::ascii_isalpha(static_cast<unsigned char>(c)) || c == '_' ||
        (!name.empty() && absl::ascii_isdigit(static_cast<unsigned char>(c)))) {
      name += c;
      continue;
    }
    // A single letter is a unit of time.
    if (name.size() > 1 && !kOthers->contains(name)) names.insert(name);
    name.clear();
  }
  return names;
}

// Of docs/monitoring/, one a line.
std::string ExpressionsOfDocuments() {
  std::string expressions;
  std::ifstream file("docs/monitoring/grafana.json");
  const nlohmann::json dashboard = nlohmann::json::parse(file);
  for (const auto& panel : dashboard["panels"]) {
    for (const auto& target : panel["targets"]) {
      absl::StrAppend(&expressions, target["expr"].get<std::string>(), "\n");
    }
  }
  std::ifstream alerts("docs/monitoring/alerts.yml");
  for (std::string line; std::getline(alerts, line);) {
    const size_t begin = line.find("expr: ");
    if (begin == std::string::npos) continue;
    absl::StrAppend(&expressions, line.substr(begin + 6), "\n");
  }
  return expressions;
}

TEST(TableServerMetricsTest, ShowsRequestsSnapshotsAndCalls) {
  const std::string directory =
      absl::StrCat(testing::TempDir(), "/table_server_metrics");
  std::filesystem::remove_all(directory);
  const auto store = store::StoreServer::Start({});
  ASSERT_THAT(store, IsOk());
  const std::string url = absl::StrCat("tcp://", (*store)->address());
  Program server("cli/hawser",
                 {"ps", "--name=ps0", "--rank=1", absl::StrCat("--init=", url),
                  absl::StrCat("--snapshot-dir=", directory), "--logging=sync",
                  "--metrics-addr=127.0.0.1:0"});
  launch::WorkerOptions options;
  options.identity = {.name = "trainer", .rank = 2};
  options.meeting_place.url = url;
  options.services.push_back(std::make_unique<ps::TableService>());
  const auto trainer = launch::Worker::Start(std::move(options));
  ASSERT_THAT(trainer, IsOk());
  ASSERT_TRUE(server.WaitForError("serving as 'ps0'")) << server.Errors();
  const int port = MetricsPort(server.Errors());
  EXPECT_THAT(Get(port, "/metrics"), HasSubstr("ps_tables 0\n"));

  const auto table = ps::Table::Create((*trainer)->agent(),
                                       {.name = "users", .width = 4}, {"ps0"});
  ASSERT_THAT(table, IsOk());
  const Tensor keys = Tensor::Arange(10, {.dtype = tensor::DType::kI64});
  ASSERT_THAT(table->Push(keys, Tensor::Ones({10, 4})).Wait(), IsOk());
  ASSERT_THAT(table->Pull(keys).Wait(), IsOk());
  ASSERT_THAT(table->Save("one").Wait(), IsOk());
  ASSERT_FALSE(table->Save("../two").Wait().ok());
  const std::string metrics = Get(port, "/metrics");
  EXPECT_THAT(metrics,
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"),
                    HasSubstr("text/plain; version=0.0.4; charset=utf-8\r\n")));
  for (const char* line : {
           "ps_push_applied_total{table=\"users\"} 1\n",
           "ps_push_duplicate_total{table=\"users\"} 0\n",
           "ps_push_keys_total{table=\"users\"} 10\n",
           "ps_push_bytes_total{table=\"users\"} 160\n",
           "ps_pull_total{table=\"users\"} 1\n",
           "ps_pull_keys_total{table=\"users\"} 10\n",
           "ps_pull_bytes_total{table=\"users\"} 160\n",
           "ps_tables 1\n",
           "ps_shard_keys{table=\"users\"} 10\n",
           "ps_table_bytes{table=\"users\"} ",
           "checkpoint_age_seconds{table=\"users\"} ",
           "checkpoint_seconds_count{table=\"users\"} 1\n",
           "wal_fsync_seconds_bucket{table=\"users\",le=\"+Inf\"} ",
           "rejected_total{reason=\"invalid_argument\"} 1\n",
           "grpc_server_handled_total{grpc_service=\"hawser.v1.TableService\","
           "grpc_method=\"Push\",grpc_code=\"OK\"} 1\n",
           "grpc_server_handling_seconds_count",
           "peer_state{peer=\"trainer\"} 1\n",
           "peer_bytes_total{peer=\"trainer\",direction=\"received\"} ",
           "calls_in_flight{side=\"server\"} ",
           "queue_depth 0\n",
           "store_reachable 1\n",
           "lease_age_seconds ",
           "rref_live{role=\"owner\"} 0\n",
           "autograd_contexts 0\n",
       }) {
    EXPECT_THAT(metrics, HasSubstr(line));
  }
  const std::set<std::string> names = MetricsIn(ExpressionsOfDocuments());
  EXPECT_GT(names.size(), 15u);
  for (const std::string& name : names) {
    EXPECT_THAT(metrics, ContainsRegex("\n" + name + "[{ ]"));
  }
  EXPECT_THAT(Get(port, "/healthz"), EndsWith("\r\n\r\nok\n"));
  EXPECT_THAT(Get(port, "/readyz"), EndsWith("\r\n\r\nready\n"));
  EXPECT_THAT((*trainer)->Shutdown(), IsOk());
  ASSERT_EQ(::kill(server.pid(), SIGTERM), 0);
  EXPECT_EQ(server.Wait(), 0) << server.Errors();
}

TEST(TableServerMetricsTest, ShowsClocksAndEvictions) {
  const auto store = store::StoreServer::Start({});
  ASSERT_THAT(store, IsOk());
  const std::string url = absl::StrCat("tcp://", (*store)->address());
  Program server("cli/hawser",
                 {"ps", "--name=ps0", "--rank=1", absl::StrCat("--init=", url),
                  "--metrics-addr=127.0.0.1:0"});
  launch::WorkerOptions options;
  options.identity = {.name = "trainer", .rank = 2};
  options.meeting_place.url = url;
  options.services.push_back(std::make_unique<ps::TableService>());
  const auto trainer = launch::Worker::Start(std::move(options));
  ASSERT_THAT(trainer, IsOk());
  ASSERT_TRUE(server.WaitForError("serving as 'ps0'")) << server.Errors();
  const auto clocked =
      ps::Table::Create((*trainer)->agent(),
                        {.name = "clocked",
                         .width = 4,
                         .consistency = ps::Consistency::BoundedStaleness(2)},
                        {"ps0"});
  ASSERT_THAT(clocked, IsOk());
  const auto small = ps::Table::Create(
      (*trainer)->agent(),
      {.name = "small", .width = 4, .retention = {.admission_pushes = 2}},
      {"ps0"});
  ASSERT_THAT(small, IsOk());
  const Tensor keys = Tensor::Arange(10, {.dtype = tensor::DType::kI64});
  ASSERT_THAT(small->Push(keys, Tensor::Ones({10, 4})).Wait(), IsOk());
  const auto clock = ps::WorkerClock::Join({*clocked});
  ASSERT_THAT(clock, IsOk());
  ASSERT_THAT(clocked->Pull(keys).Wait(), IsOk());

  const std::string metrics = Get(MetricsPort(server.Errors()), "/metrics");
  for (const char* line : {
           "ps_updates_not_admitted_total{table=\"small\"} 10\n",
           "ps_rows_evicted_total{table=\"small\"} 0\n",
           "ps_clock{table=\"clocked\"} ",
           "ps_clock_workers{table=\"clocked\"} 1\n",
           "ps_parked_requests{table=\"clocked\"} 0\n",
           "ps_staleness_steps_total{table=\"clocked\",steps=\"0\"} 1\n",
       }) {
    EXPECT_THAT(metrics, HasSubstr(line));
  }
}

TEST(TableServerMetricsTest, AWorkerThatWaitsForOthersIsNotReady) {
  // Rank 1 of 2 waits for rank 0.
  const auto store = store::StoreServer::Start({});
  ASSERT_THAT(store, IsOk());
  Program server(
      "cli/hawser",
      {"ps", "--name=ps0", "--rank=1",
       absl::StrCat("--init=tcp://", (*store)->address(), "?world_size=2"),
       "--metrics-addr=127.0.0.1:0"});
  ASSERT_TRUE(server.WaitForError("metrics at")) << server.Errors();
  const int port = MetricsPort(server.Errors());
  EXPECT_THAT(Get(port, "/healthz"), EndsWith("\r\n\r\nok\n"));
  EXPECT_THAT(Get(port, "/readyz"), AllOf(StartsWith("HTTP/1.1 503 "),
                                          EndsWith("\r\n\r\njoining\n")));
}

TEST(TableServerMetricsTest, OtherAddressesNeedPermission) {
  Program server("cli/hawser",
                 {"ps", "--name=ps0", "--rank=1", "--init=tcp://127.0.0.1:1",
                  "--metrics-addr=0.0.0.0:0"});
  EXPECT_EQ(server.Wait(), 2);
  EXPECT_THAT(server.Errors(),
              ContainsRegex("refusing to serve metrics on 0.0.0.0.*loopback"));
}

}  // namespace
}  // namespace hawser::tests

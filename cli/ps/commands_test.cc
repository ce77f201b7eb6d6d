// `hawser ps tables`, `status`, `snapshot`, `restore` and `export` on a job in
// this process.

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "cli/run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/worker.h"
#include "launch/worker_options.h"
#include "net/auth/credentials.h"
#include "net/testing/test_credentials.h"
#include "nlohmann/json.hpp"
#include "optim/schedule_spec.h"
#include "ps/storage/table_spec.h"
#include "ps/table.h"
#include "ps/table_service.h"
#include "tensor/dtype.h"
#include "tensor/io/safetensors.h"
#include "tensor/tensor.h"

namespace hawser::cli {
namespace {

using ::hawser::async::IsOk;
using ::nlohmann::json;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

struct Outcome {
  int exit_code;
  std::string out;
  std::string err;
};

// Workers "trainer", "ps0" and "ps1"; the latter share a directory of
// snapshots.
class PsCommandsTest : public testing::Test {
 protected:
  PsCommandsTest() { std::filesystem::remove_all(directory_); }
  ~PsCommandsTest() override {
    // The first worker has the store.
    while (!workers_.empty()) workers_.pop_back();
  }

  // `authority`: of the certificates of all workers; null: without TLS.
  void Start(bool with_snapshots = true,
             net::TestAuthority* authority = nullptr) {
    for (const char* name : {"trainer", "ps0", "ps1"}) {
      launch::WorkerOptions options;
      options.identity.name = name;
      options.identity.rank = static_cast<int>(workers_.size());
      options.meeting_place.master_port = port_;
      if (authority != nullptr) {
        options.network.credentials = authority->Issue(name);
      }
      if (!workers_.empty() || with_snapshots) {
        options.services.push_back(
            std::make_unique<ps::TableService>(ps::TableServiceOptions{
                .snapshot_directory = with_snapshots ? directory_ : ""}));
      }
      auto worker = launch::Worker::Start(std::move(options));
      ASSERT_THAT(worker, IsOk());
      workers_.push_back(*std::move(worker));
      const std::string master = workers_[0]->master();
      port_ = std::stoi(master.substr(master.rfind(':') + 1));
    }
  }

  // A table of SGD with learning rate 1.
  ps::Table CreateTable(const std::string& name,
                        std::vector<std::string> servers) {
    auto table = ps::Table::Create(
        workers_.back()->agent(),
        {.name = name, .width = 2, .rule = {"SGD", {{"lr", 1}}}},
        std::move(servers));
    EXPECT_THAT(table, IsOk());
    return *table;
  }

  // Adds 1 to the rows 0 to 9.
  void Push(const ps::Table& table) {
    ASSERT_THAT(table.Push(keys_, Tensor::Full({10, 2}, -1)).Wait(), IsOk());
  }
  // A weight of one of these rows.
  float Weight(const ps::Table& table) {
    const auto rows = table.Pull(keys_).Wait();
    EXPECT_THAT(rows, IsOk());
    return rows.ok() ? rows->ToVector<float>()[7] : -1;
  }

  // `hawser ps` with these arguments.
  Outcome Ps(const std::vector<std::string>& arguments) {
    std::vector<std::string> all = arguments;
    all.push_back(absl::StrCat("--init=tcp://127.0.0.1:", port_));
    return Run(std::move(all));
  }
  // The same without a job.
  static Outcome Run(std::vector<std::string> all) {
    all.insert(all.begin(), "ps");
    std::ostringstream out;
    std::ostringstream err;
    const int exit_code = cli::Run(all, out, err);
    return {exit_code, out.str(), err.str()};
  }
  json PsJson(std::vector<std::string> arguments) {
    arguments.emplace_back("--json");
    const Outcome outcome = Ps(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return json::parse(outcome.out, nullptr, /*allow_exceptions=*/false);
  }

  const std::string directory_ = absl::StrCat(testing::TempDir(), "/ps");
  const Tensor keys_ = Tensor::Arange(10, {.dtype = tensor::DType::kI64});
  int port_ = 0;
  std::vector<std::unique_ptr<launch::Worker>> workers_;
};

TEST_F(PsCommandsTest, TablesShowsTheTablesOfAllServers) {
  Start();
  const ps::Table users = CreateTable("users", {"ps1", "ps0"});
  ASSERT_THAT(
      ps::Table::Create(
          workers_.back()->agent(),
          {.name = "items",
           .width = 2,
           .rule = {"SGD", {{"lr", 1}}},
           .schedule = optim::ScheduleSpec::Linear({.total_steps = 10})
                           .Then(10, optim::ScheduleSpec::Exponential({})),
           .key_ranges = {{.first = 0, .last = 9}, {.first = 20, .last = 29}}},
          {"ps0"}),
      IsOk());
  Push(users);
  const json tables = PsJson({"tables"});
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_EQ(tables[0]["table"], "items");
  EXPECT_EQ(tables[0]["servers"], json({"ps0"}));
  EXPECT_EQ(tables[0]["shards"], json({"0-1023"}));
  EXPECT_EQ(tables[0]["schedule"],
            "LinearLR(end_factor=1, start_factor=0.333333, total_steps=10), "
            "from 10 ExponentialLR(gamma=1)");
  EXPECT_EQ(tables[0]["key_ranges"], 2);
  EXPECT_EQ(tables[1]["schedule"], nullptr);
  EXPECT_EQ(tables[1]["key_ranges"], 0);
  EXPECT_EQ(tables[1]["table"], "users");
  EXPECT_EQ(tables[1]["width"], 2);
  EXPECT_EQ(tables[1]["dtype"], "f32");
  EXPECT_THAT(tables[1]["rule"].get<std::string>(),
              ContainsRegex("^SGD\\(.*lr=1[,)]"));
  EXPECT_EQ(tables[1]["rows"], 10);
  EXPECT_GE(tables[1]["bytes"], 10 * 2 * 4);
  EXPECT_EQ(tables[1]["servers"], json({"ps1", "ps0"}));
  EXPECT_EQ(tables[1]["shards"], json({"0-511", "512-1023"}));
  EXPECT_EQ(tables[1]["state"], "complete");
  EXPECT_EQ(tables[1]["snapshot"], nullptr);

  const json part = PsJson({"tables", "--server=ps1"});
  ASSERT_EQ(part.size(), 1u);
  EXPECT_EQ(part[0]["servers"], json({"ps1"}));
  EXPECT_EQ(part[0]["state"], "incomplete");
  const Outcome text = Ps({"tables"});
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("table  width  dtype"), HasSubstr("ps1,ps0")));
}

TEST_F(PsCommandsTest, StatusCountsRequests) {
  Start();
  const ps::Table users = CreateTable("users", {"ps0", "ps1"});
  Push(users);
  Push(users);
  EXPECT_EQ(Weight(users), 2);
  EXPECT_FALSE(
      users.Push(keys_, Tensor::Full({10, 2}, 1), {.learning_rate = -1})
          .Wait()
          .ok());
  const json servers = PsJson({"status"});
  ASSERT_EQ(servers.size(), 3u);
  EXPECT_EQ(servers[0]["server"], "trainer");
  EXPECT_EQ(servers[0]["tables"], 0);
  EXPECT_EQ(servers[1]["server"], "ps0");
  for (const json& server : {servers[1], servers[2]}) {
    EXPECT_EQ(server["status"], "SERVING");
    EXPECT_EQ(server["tables"], 1);
    EXPECT_EQ(server["pushes"], 2);
    EXPECT_EQ(server["pulls"], 1);
    EXPECT_EQ(server["repeated"], 0);
    EXPECT_EQ(server["refused"], 1);
    EXPECT_EQ(server["logging"], "off");
    EXPECT_EQ(server["snapshot"], nullptr);
  }
  EXPECT_EQ(servers[1]["rows"].get<int>() + servers[2]["rows"].get<int>(), 10);
  EXPECT_EQ(PsJson({"status", "--server=ps1"}).size(), 1u);
}

TEST_F(PsCommandsTest, RestoreReplacesATableByItsSnapshot) {
  Start();
  const ps::Table users = CreateTable("users", {"ps1", "ps0"});
  Push(users);
  const json saved = PsJson({"snapshot", "users", "one"});
  ASSERT_EQ(saved.size(), 2u);
  EXPECT_EQ(saved[0]["server"], "ps1");
  EXPECT_EQ(saved[0]["rows"].get<int>() + saved[1]["rows"].get<int>(), 10);
  EXPECT_GT(saved[0]["bytes"], 0);
  EXPECT_EQ(PsJson({"tables"})[0]["snapshot"], "one");
  EXPECT_LT(PsJson({"status"})[1]["snapshot_age_s"], 600);
  Push(users);
  EXPECT_EQ(Weight(users), 2);
  // It is not replaced by a later one.
  const Outcome again = Ps({"snapshot", "users", "one"});
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_THAT(again.err,
              AllOf(HasSubstr("the snapshot exists"), HasSubstr("users.")));
  EXPECT_EQ(PsJson({"restore", "users", "one"}).size(), 2u);
  EXPECT_EQ(Weight(users), 1);
  EXPECT_EQ(PsJson({"snapshot", "users", "two"}).size(), 2u);
}

TEST_F(PsCommandsTest, AnIncrementRestoresWithItsBase) {
  Start();
  const ps::Table users = CreateTable("users", {"ps1", "ps0"});
  Push(users);
  PsJson({"snapshot", "users", "full"});
  EXPECT_EQ(PsJson({"snapshot", "users", "same", "--base=full"})[0]["rows"], 0);
  Push(users);
  const json saved = PsJson({"snapshot", "users", "more", "--base=same"});
  EXPECT_EQ(saved[0]["rows"].get<int>() + saved[1]["rows"].get<int>(), 10);
  Push(users);
  PsJson({"restore", "users", "more"});
  EXPECT_EQ(Weight(users), 2);
  const Outcome refused = Ps({"snapshot", "users", "next", "--base=more"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("save a snapshot without a base"));
}

TEST_F(PsCommandsTest, ExportWritesATableOfASnapshot) {
  Start();
  Push(CreateTable("users", {"ps1", "ps0"}));
  PsJson({"snapshot", "users", "one"});
  const std::string file = directory_ + "/users.safetensors";
  const std::vector<std::string> command = {"export", "users", "one", file,
                                            "--snapshot-dir=" + directory_};
  const Outcome outcome = Run(command);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("keys"), HasSubstr("weights")));
  const auto exported = tensor::LoadSafetensors(file);
  ASSERT_THAT(exported, IsOk());
  EXPECT_EQ(exported->Find("keys")->ToVector<int64_t>(),
            keys_.ToVector<int64_t>());
  EXPECT_EQ(exported->Find("weights")->ToVector<float>(),
            std::vector<float>(20, 1));

  const Outcome again = Run(command);
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_THAT(again.err, HasSubstr("exists: choose another name"));
  const Outcome missing =
      Run({"export", "users", "two", file, "--snapshot-dir=" + directory_});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.err, HasSubstr(directory_ + "/two"));
}

TEST_F(PsCommandsTest, RestoreMovesATableToOtherServers) {
  Start();
  const ps::Table users = CreateTable("users", {"ps0"});
  Push(users);
  PsJson({"snapshot", "users", "one"});
  EXPECT_EQ(PsJson({"restore", "users", "one", "--servers=trainer,ps1"}).size(),
            2u);
  // The handle follows.
  Push(users);
  EXPECT_EQ(Weight(users), 2);
  EXPECT_EQ(users.servers(), (std::vector<std::string>{"trainer", "ps1"}));
  const json tables = PsJson({"tables"});
  EXPECT_EQ(tables[0]["servers"], json({"trainer", "ps1"}));
  EXPECT_EQ(tables[0]["state"], "complete");
  const auto moved =
      ps::Table::Open(workers_[1]->agent(), "users", {"trainer", "ps1"});
  ASSERT_THAT(moved, IsOk());
  EXPECT_EQ(Weight(*moved), 2);
  // By its name, and onto the same servers again.
  const auto opened = ps::Table::Open(workers_[1]->agent(), "users");
  ASSERT_THAT(opened, IsOk());
  EXPECT_EQ(opened->servers(), (std::vector<std::string>{"trainer", "ps1"}));
  EXPECT_EQ(PsJson({"restore", "users", "one"}).size(), 2u);
}

TEST_F(PsCommandsTest, ErrorsNameTheTableServerAndSnapshot) {
  Start();
  CreateTable("users", {"ps0"});
  PsJson({"snapshot", "users", "one"});
  const struct {
    std::vector<std::string> arguments;
    int exit_code;
    const char* error;
  } kCases[] = {
      {{"snapshot", "user", "one"},
       1,
       "no server of the job has table "
       "\"user\"; there are \"users\""},
      {{"snapshot", "users", "../x"}, 1, "letters, digits"},
      {{"restore", "users", "two"}, 1, "two"},
      {{"restore", "items", "one"}, 1, "--servers says which servers"},
      {{"restore", "items", "one", "--servers=ps0"}, 1, "\"items\""},
      {{"restore", "users", "one", "--servers=ps0,ps7"}, 1, "'ps7'"},
      {{"restore", "users", "one", "--servers=ps0,ps0"}, 1, "'ps0' twice"},
      {{"tables", "--server=ps7"}, 1, "'ps7'"},
      {{"status", "--job=other"}, 1, "'other'"},
      {{"--name=x", "status"}, 1, "--name"},
  };
  for (const auto& [arguments, exit_code, error] : kCases) {
    const Outcome outcome = Ps(arguments);
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(error));
    EXPECT_EQ(outcome.out, "");
  }
}

TEST_F(PsCommandsTest, SnapshotNeedsADirectory) {
  Start(/*with_snapshots=*/false);
  CreateTable("users", {"ps0"});
  const Outcome outcome = Ps({"snapshot", "users", "one"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("ps0"), HasSubstr("no directory for snapshots")));
  // The trainer has no tables at all.
  EXPECT_EQ(PsJson({"status"}).size(), 2u);
  EXPECT_THAT(Ps({"status", "--server=trainer"}).err,
              HasSubstr("'trainer' does not serve tables"));
}

// With TLS, observers see everything and change nothing; any other identity of
// the job may change tables.
TEST_F(PsCommandsTest, ObserversChangeNothing) {
  net::TestAuthority authority;
  Start(/*with_snapshots=*/true, &authority);
  const ps::Table users = CreateTable("users", {"ps0", "ps1"});
  Push(users);
  const net::CredentialsOptions own = authority.Issue("operator");
  const std::pair<const char*, std::string> variables[] = {
      {"HAWSER_TLS_CERT", own.certificate_path},
      {"HAWSER_TLS_KEY", own.key_path},
      {"HAWSER_TLS_CA", own.ca_path}};
  // Of that identity, or without any.
  const auto run = [&](std::vector<std::string> arguments,
                       bool with_identity = true) {
    for (const auto& [name, path] : variables) {
      if (with_identity) setenv(name, path.c_str(), 1);
    }
    arguments.emplace_back("--as=operator");
    const Outcome outcome = Ps(arguments);
    for (const auto& [name, path] : variables) unsetenv(name);
    return outcome;
  };
  const std::string file = directory_ + "/users.safetensors";
  for (const std::vector<std::string>& roles :
       {std::vector<std::string>{}, {"admin"}}) {
    authority.Issue("operator", absl::Hours(1), roles);
    const std::string snapshot = roles.empty() ? "one" : "two";
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"tables"},
          {"status"},
          {"snapshot", "users", snapshot},
          {"restore", "users", snapshot, "--servers=ps1"}}) {
      const Outcome outcome = run(command);
      EXPECT_EQ(outcome.exit_code, 0) << command[0] << ": " << outcome.err;
    }
  }
  authority.Issue("operator", absl::Hours(1), {"observer"});
  const Outcome tables = run({"tables"});
  EXPECT_EQ(tables.exit_code, 0) << tables.err;
  EXPECT_THAT(tables.out, HasSubstr("users"));
  EXPECT_EQ(run({"status"}).exit_code, 0);
  const Outcome snapshot = run({"snapshot", "users", "three"});
  EXPECT_EQ(snapshot.exit_code, 2);
  EXPECT_THAT(snapshot.err,
              AllOf(HasSubstr("observers may not call"),
                    HasSubstr("hawser.v1.TableService.SaveTable")));
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/three"));
  const Outcome restore = run({"restore", "users", "one", "--servers=ps0"});
  EXPECT_EQ(restore.exit_code, 2);
  EXPECT_THAT(restore.err, HasSubstr("the role observer, which is read-only"));
  EXPECT_EQ(Weight(users), 1);
  EXPECT_EQ(users.servers(), std::vector<std::string>{"ps1"});
  // The files of a snapshot are read without the job.
  const Outcome exported =
      Run({"export", "users", "one", file, "--snapshot-dir=" + directory_});
  EXPECT_EQ(exported.exit_code, 0) << exported.err;
  const Outcome stranger = run({"tables", "--timeout=2"}, false);
  EXPECT_NE(stranger.exit_code, 0);
  EXPECT_EQ(stranger.out, "");
}

TEST_F(PsCommandsTest, UnreachableJobIsReported) {
  port_ = 1;
  const Outcome outcome = Ps({"tables", "--timeout=1"});
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("127.0.0.1:1"));
}

}  // namespace
}  // namespace hawser::cli

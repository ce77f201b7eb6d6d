// `hawser list`, `call` and `health` on a job in this process.

#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "cli/run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/worker.h"
#include "net/testing/test_credentials.h"
#include "nlohmann/json.hpp"
#include "rpc/functions/function.h"
#include "rpc/functions/function_registry.h"
#include "tensor/ops/elementwise.h"
#include "tensor/tensor.h"

namespace hawser::cli {
namespace {

using ::hawser::async::IsOk;
using ::nlohmann::json;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

inline constexpr rpc::Function<Tensor(Tensor, Tensor)> kAdd{"cli.Add"};
inline constexpr rpc::Function<std::string(std::string, int64_t)> kRepeat{
    "cli.Repeat"};
inline constexpr rpc::Function<void(std::string)> kFail{"cli.Fail"};
inline constexpr rpc::Function<int64_t()> kLimited{"cli.Limited"};

struct Outcome {
  int exit_code;
  std::string out;
  std::string err;
};

class JobCommandsTest : public testing::Test {
 protected:
  JobCommandsTest() {
    EXPECT_THAT(registry_.Register(kAdd,
                                   [](const Tensor& a, const Tensor& b) {
                                     return tensor::Add(a, b);
                                   }),
                IsOk());
    EXPECT_THAT(registry_.Register(kRepeat,
                                   [](const std::string& text, int64_t times) {
                                     std::string all;
                                     for (int64_t i = 0; i < times; ++i)
                                       all += text;
                                     return all;
                                   }),
                IsOk());
    EXPECT_THAT(registry_.Register(kFail,
                                   [](const std::string& text) {
                                     return absl::DataLossError(text);
                                   }),
                IsOk());
    EXPECT_THAT(registry_.Register(kLimited, [] { return int64_t{1}; },
                                   {.allowed_roles = {"ps", "observer"},
                                    .max_request_bytes = 100'000}),
                IsOk());
  }

  // Starts workers "w0" and "w1".
  void Start(net::TestAuthority* authority = nullptr) {
    for (int rank = 0; rank < 2; ++rank) {
      const std::string name = absl::StrCat("w", rank);
      launch::WorkerOptions options;
      options.identity.name = name;
      options.identity.rank = rank;
      if (rank == 1) options.identity.roles = {"ps", "evaluator"};
      options.registry = &registry_;
      options.meeting_place.master_port = rank == 0 ? 0 : master_port_;
      if (authority != nullptr) {
        options.network.credentials =
            authority->Issue(name, absl::Hours(1), options.identity.roles);
      }
      auto worker = launch::Worker::Start(std::move(options));
      ASSERT_THAT(worker, IsOk());
      workers_.push_back(*std::move(worker));
      master_ = workers_[0]->master();
      master_port_ = std::stoi(master_.substr(master_.rfind(':') + 1));
    }
  }

  Outcome Hawser(std::vector<std::string> arguments) {
    if (!master_.empty()) {
      arguments.insert(arguments.begin() + 1,
                       {"--init", absl::StrCat("tcp://", master_)});
    }
    std::ostringstream out;
    std::ostringstream err;
    const int exit_code = cli::Run(arguments, out, err);
    return {exit_code, out.str(), err.str()};
  }

  rpc::FunctionRegistry registry_;
  std::string master_;
  int master_port_ = 0;
  std::vector<std::unique_ptr<launch::Worker>> workers_;
};

TEST_F(JobCommandsTest, ListShowsWorkersThatJoinAndLeave) {
  Start();
  const Outcome both = Hawser({"list", "--json"});
  ASSERT_EQ(both.exit_code, 0) << both.err;
  const json list = json::parse(both.out);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0]["name"], "w0");
  EXPECT_EQ(list[1]["rank"], 1);
  EXPECT_EQ(list[0]["roles"], json::array());
  EXPECT_EQ(list[1]["roles"], json({"ps", "evaluator"}));
  EXPECT_EQ(list[1]["address"], workers_[1]->agent().info().address);
  EXPECT_EQ(list[1]["incarnation"],
            rpc::ToString(workers_[1]->agent().info().incarnation));

  ASSERT_THAT(workers_[1]->Shutdown(), IsOk());
  const Outcome one = Hawser({"list"});
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_THAT(one.out, AllOf(HasSubstr("name"), HasSubstr("w0 ")));
  EXPECT_THAT(one.out, testing::Not(HasSubstr("w1")));
}

TEST_F(JobCommandsTest, ListShowsTheFunctionsOfAWorker) {
  Start();
  const Outcome outcome = Hawser({"list", "w1"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              AllOf(ContainsRegex("cli.Add +0 +Tensor.Tensor, Tensor."),
                    ContainsRegex("cli.Limited +ps,observer +100000 +int64"),
                    ContainsRegex("cli.Repeat +0 +string.string, int64.")));
  const Outcome as_json = Hawser({"list", "w1", "--json"});
  const json list = json::parse(as_json.out);
  ASSERT_EQ(list.size(), 4u) << as_json.err;
  EXPECT_EQ(list[2]["allowed_roles"], json({"ps", "observer"}));
  EXPECT_EQ(list[2]["max_request_bytes"], 100'000);
}

TEST_F(JobCommandsTest, CallPrintsTheResult) {
  Start();
  const Outcome added =
      Hawser({"call", "w1", "cli.Add", "[[1, 2]]", "[[10, 20]]"});
  EXPECT_EQ(added.out,
            "{\"data\":[11.0,22.0],\"dtype\":\"f32\",\"shape\":[1,2]}\n")
      << added.err;
  EXPECT_EQ(Hawser({"call", "w1", "cli.Repeat", "\"a\"", "-1"}).out, "\"\"\n");
  const Outcome repeated = Hawser({"call", "w0", "cli.Repeat", "\"ab\"", "2"});
  EXPECT_EQ(repeated.out, "\"abab\"\n");
  EXPECT_EQ(repeated.exit_code, 0);
  EXPECT_EQ(repeated.err, "");
}

TEST_F(JobCommandsTest, ErrorsOfCallNameTheFault) {
  Start();
  const struct {
    std::vector<std::string> arguments;
    int exit_code;
    const char* error;
  } kCases[] = {
      {{"w2", "cli.Add"}, 2, "worker 'w2'; its workers are 'w0', 'w1'"},
      {{"w1", "cli.None"}, 2, "does not have a function 'cli.None'"},
      {{"w1", "cli.Repeat", "\"a\""}, 1, "string(string, int64)"},
      {{"w1", "cli.Repeat", "a", "1"}, 1, "argument 1 is not JSON"},
      {{"w1", "cli.Repeat", "1", "1"}, 1, "argument 1 must be string"},
      {{"w1", "cli.Fail", "\"the text\""}, 2, "the text"},
      {{"w1", "cli.Fail", "\"a\\u001b[2J\""}, 2, "a\\x1b[2J"},
      {{"--job", "other", "w1", "cli.Add"}, 2, "has joined job 'other'"},
      {{"w1", "cli.Repeat", std::string(100'000, '['), "1"}, 1, "64 nested"},
      {{"w1"}, 1, "FUNCTION"},
  };
  for (const auto& [arguments, exit_code, error] : kCases) {
    std::vector<std::string> all = {"call"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Outcome outcome = Hawser(all);
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(error));
    EXPECT_EQ(outcome.out, "");
  }
}

TEST_F(JobCommandsTest, HealthChecksAllWorkersOrAddresses) {
  Start();
  const Outcome all = Hawser({"health"});
  EXPECT_EQ(all.exit_code, 0) << all.err;
  EXPECT_EQ(all.out, "w0 SERVING\nw1 SERVING\n");
  const Outcome store =
      Hawser({"health", master_, "--service", "hawser.v1.Store"});
  EXPECT_EQ(store.exit_code, 0) << store.err;
  EXPECT_EQ(store.out, absl::StrCat(master_, " SERVING\n"));
  const Outcome none = Hawser({"health", master_, "--service", "none"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("no such service"));
  const std::string gone = workers_[1]->agent().info().address;
  ASSERT_THAT(workers_[1]->Shutdown(), IsOk());
  const Outcome stopped = Hawser({"health", master_, gone});
  EXPECT_EQ(stopped.exit_code, 3);
  EXPECT_THAT(stopped.out, AllOf(HasSubstr(absl::StrCat(master_, " SERVING")),
                                 HasSubstr(absl::StrCat(gone, " UNKNOWN"))));
  const Outcome as_json = Hawser({"health", "--json", master_, gone});
  EXPECT_EQ(as_json.exit_code, 3);
  const json list = json::parse(as_json.out);
  EXPECT_EQ(list[0]["status"], "SERVING");
  EXPECT_FALSE(list[0].contains("error"));
  EXPECT_EQ(list[1]["address"], gone);
  EXPECT_EQ(list[1]["status"], "UNKNOWN");
  EXPECT_NE(list[1]["error"], "");
}

TEST_F(JobCommandsTest, JobWithTlsRequiresACertificate) {
  net::TestAuthority authority;
  Start(&authority);
  const net::CredentialsOptions own = authority.Issue("operator");
  const auto with_tls = [&](std::vector<std::string> arguments) {
    for (const auto& [name, path] :
         {std::pair{"HAWSER_TLS_CERT", own.certificate_path},
          std::pair{"HAWSER_TLS_KEY", own.key_path},
          std::pair{"HAWSER_TLS_CA", own.ca_path},
          std::pair{"HAWSER_TOKEN_FILE", own.token_path}}) {
      if (!path.empty()) setenv(name, path.c_str(), 1);
    }
    const Outcome outcome = Hawser(std::move(arguments));
    for (const char* name : {"HAWSER_TLS_CERT", "HAWSER_TLS_KEY",
                             "HAWSER_TLS_CA", "HAWSER_TOKEN_FILE"}) {
      unsetenv(name);
    }
    return outcome;
  };
  const Outcome called =
      with_tls({"call", "--as", "operator", "w1", "cli.Repeat", "\"a\"", "3"});
  EXPECT_EQ(called.out, "\"aaa\"\n") << called.err;
  const Outcome limited =
      with_tls({"call", "--as", "operator", "w1", "cli.Limited"});
  EXPECT_EQ(limited.exit_code, 2);
  EXPECT_THAT(limited.err, HasSubstr("the roles ps, observer"));
  const Outcome health = with_tls({"health"});
  EXPECT_EQ(health.out, "w0 SERVING\nw1 SERVING\n") << health.err;
  // An observer may list, and may call functions that name its role.
  authority.Issue("operator", absl::Hours(1), {"observer"});
  EXPECT_THAT(with_tls({"list"}).out, HasSubstr("ps,evaluator"));
  EXPECT_THAT(with_tls({"list", "--as", "operator", "w1"}).out,
              HasSubstr("cli.Limited"));
  EXPECT_EQ(with_tls({"call", "--as", "operator", "w1", "cli.Limited"}).out,
            "1\n");
  EXPECT_THAT(
      with_tls({"call", "--as", "operator", "w1", "cli.Repeat", "\"a\"", "3"})
          .err,
      HasSubstr("any role but observer"));
  // With a name other than the one in the certificate.
  const Outcome other =
      with_tls({"call", "--as", "w0", "w1", "cli.Repeat", "\"a\"", "3"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("operator"));
  EXPECT_NE(Hawser({"list", "--timeout", "2"}).exit_code, 0);
}

}  // namespace
}  // namespace hawser::cli

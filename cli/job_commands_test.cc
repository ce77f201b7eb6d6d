// `hawser list`, `call` and `health` on a job in this process.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "async/testing/status_matchers.h"
#include "cli/run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/worker.h"
#include "net/testing/test_credentials.h"
#include "nlohmann/json.hpp"
#include "rpc/functions/function.h"
#include "rpc/functions/function_registry.h"
#include "rpc/stream/register_stream.h"
#include "rpc/stream/stream_function.h"
#include "rpc/wire/decoder.h"
#include "rpc/wire/encoder.h"
#include "rpc/wire/structs/struct_traits.h"
#include "rpc/wire/wire_traits.h"
#include "store/grpc/server.h"
#include "store/grpc/store.h"
#include "tensor/ops/elementwise.h"
#include "tensor/tensor.h"

namespace hawser::cli {
namespace {

// A user's struct.
struct Range {
  double low = 0, high = 0;
};

// A user's type that is not a struct of fields. It travels as a number.
struct Angle {
  double degrees = 0;
};

}  // namespace
}  // namespace hawser::cli

template <>
struct hawser::rpc::WireTraits<hawser::cli::Range>
    : hawser::rpc::StructTraits<hawser::cli::Range> {
  static std::string TypeName() { return "cli.Range"; }
  static constexpr auto kFields = std::tuple{Field{"low", &cli::Range::low},
                                             Field{"high", &cli::Range::high}};
};

template <>
struct hawser::rpc::WireTraits<hawser::cli::Angle> {
  static std::string TypeName() { return "cli.Angle"; }
  static absl::Status Encode(Encoder& encoder, const cli::Angle& angle) {
    return WireTraits<double>::Encode(encoder, angle.degrees);
  }
  static absl::StatusOr<cli::Angle> Decode(Decoder& decoder) {
    ASSIGN_OR_RETURN(const double degrees, WireTraits<double>::Decode(decoder));
    return cli::Angle{degrees};
  }
};

namespace hawser::cli {
namespace {

using ::hawser::async::IsOk;
using ::nlohmann::json;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

inline constexpr rpc::Function<Tensor(Tensor, Tensor)> kAdd{"cli.Add"};
inline constexpr rpc::Function<std::string(std::string, int64_t)> kRepeat{
    "cli.Repeat"};
inline constexpr rpc::Function<void(std::string)> kFail{"cli.Fail"};
inline constexpr rpc::Function<int64_t()> kLimited{"cli.Limited"};
inline constexpr rpc::Function<Range(std::vector<Range>)> kHull{"cli.Hull"};
inline constexpr rpc::Function<Angle(Angle, Range)> kClamp{"cli.Clamp"};
inline constexpr rpc::Function<void()> kNever{"cli.Never"};
inline constexpr rpc::Function<void()> kMiss{"cli.Miss"};
// Writes `tensor` the given number of times; then fails if that is not
// positive.
inline constexpr rpc::StreamFunction<Tensor(Tensor, int64_t)> kCopies{
    "cli.Copies"};
inline constexpr rpc::StreamFunction<int64_t()> kForever{"cli.Forever"};

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
    EXPECT_THAT(registry_.Register(
                    kHull,
                    [](const std::vector<Range>& ranges) {
                      return Range{ranges.front().low, ranges.back().high};
                    }),
                IsOk());
    EXPECT_THAT(registry_.Register(kClamp,
                                   [](Angle angle, Range range) {
                                     return Angle{std::clamp(
                                         angle.degrees, range.low, range.high)};
                                   }),
                IsOk());
    EXPECT_THAT(registry_.Register(kNever, [this] { return never_.future(); }),
                IsOk());
    EXPECT_THAT(
        registry_.Register(kMiss, [] { return absl::NotFoundError("no row"); }),
        IsOk());
    RegisterStreams();
  }

  void RegisterStreams() {
    EXPECT_THAT(rpc::RegisterStream(
                    registry_, kCopies,
                    [](rpc::StreamWriter<Tensor> out, const Tensor& tensor,
                       int64_t count) -> absl::Status {
                      for (int64_t i = 0; i < count; ++i) {
                        RETURN_IF_ERROR(out.Write(tensor).Wait());
                      }
                      return count > 0
                                 ? absl::OkStatus()
                                 : absl::DataLossError("count is not positive");
                    }),
                IsOk());
    EXPECT_THAT(rpc::RegisterStream(registry_, kForever,
                                    [](rpc::StreamWriter<int64_t> out) {
                                      absl::Status status;
                                      while (status.ok())
                                        status = out.Write(1).Wait();
                                      return status;
                                    }),
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

  async::Promise<void> never_;
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
  ASSERT_EQ(list.size(), 10u) << as_json.err;
  EXPECT_EQ(list[6]["allowed_roles"], json({"ps", "observer"}));
  EXPECT_EQ(list[6]["max_request_bytes"], 100'000);
}

TEST_F(JobCommandsTest, ListShowsTheFieldsOfStructs) {
  Start();
  const Outcome outcome = Hawser({"list", "w1"});
  EXPECT_THAT(
      outcome.out,
      AllOf(HasSubstr("cli.Angle(cli.Angle, cli.Range)\n"),
            testing::EndsWith("\n\ntype       fields\n"
                              "cli.Range  low: double, high: double\n")));
  const json list = json::parse(Hawser({"list", "w1", "--json"}).out);
  EXPECT_EQ(list[1]["signature"],
            "cli.Angle(cli.Angle, cli.Range) where "
            "cli.Range{low: double, high: double}");
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

TEST_F(JobCommandsTest, CallPrintsEachValueOfAStream) {
  Start();
  const Outcome copies = Hawser({"call", "w1", "cli.Copies", "[1]", "3"});
  const std::string line = "{\"data\":[1.0],\"dtype\":\"f32\",\"shape\":[1]}\n";
  EXPECT_EQ(copies.out, line + line + line) << copies.err;
  EXPECT_EQ(copies.exit_code, 0);
  EXPECT_EQ(copies.err, "");
  const Outcome forever =
      Hawser({"call", "w1", "cli.Forever", "--timeout=0.5"});
  EXPECT_EQ(forever.exit_code, 4) << forever.err;
  EXPECT_THAT(forever.out, StartsWith("1\n1\n"));
}

TEST_F(JobCommandsTest, CallTakesStructsByTheirFields) {
  Start();
  const Outcome hull =
      Hawser({"call", "w1", "cli.Hull",
              R"([{"low": 1, "high": 2}, {"high": 4.5, "low": 3}])"});
  EXPECT_EQ(hull.out, "{\"high\":4.5,\"low\":1.0}\n") << hull.err;
}

TEST_F(JobCommandsTest, CallTakesOtherUserTypesAsTheyTravel) {
  Start();
  const Outcome clamped =
      Hawser({"call", "w1", "cli.Clamp", R"({"type": "double", "value": 400})",
              R"({"low": 0, "high": 360})"});
  EXPECT_EQ(clamped.out, "360.0\n") << clamped.err;
}

TEST_F(JobCommandsTest, ListFindsTheStoreAsWorkersDo) {
  Start();
  setenv("MASTER_PORT", absl::StrCat(master_port_).c_str(), 1);
  master_.clear();
  const Outcome listed = Hawser({"list"});
  unsetenv("MASTER_PORT");
  EXPECT_EQ(listed.exit_code, 0) << listed.err;
  EXPECT_THAT(listed.out, HasSubstr("w1"));
}

TEST_F(JobCommandsTest, UnreachableStoreIsNamedAndExitsWithThree) {
  const Outcome outcome =
      Hawser({"list", "--init=tcp://127.0.0.1:1", "--timeout=0.2"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("127.0.0.1:1"), HasSubstr("HAWSER_INIT")));
}

TEST_F(JobCommandsTest, ListShowsWhoDoesNotServeYet) {
  const auto server = store::StoreServer::Start({});
  ASSERT_THAT(server, IsOk());
  const auto store =
      store::GrpcStore::Connect({.address = (*server)->address()});
  ASSERT_THAT(store, IsOk());
  const auto start = [&](int rank) {
    launch::WorkerOptions options;
    options.identity.name = absl::StrCat("w", rank);
    options.identity.rank = rank;
    options.identity.world_size = 2;
    options.meeting_place.store = store->get();
    return launch::Worker::Start(std::move(options));
  };
  master_ = (*server)->address();
  absl::StatusOr<std::unique_ptr<launch::Worker>> w0;
  std::thread first([&] { w0 = start(0); });
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::minutes(1);
  std::string waiting;
  while (waiting.find("w0") == std::string::npos &&
         std::chrono::steady_clock::now() < deadline) {
    waiting = Hawser({"list"}).out;
  }
  EXPECT_THAT(waiting, ContainsRegex("w0 +NOT_SERVING +0"));
  const auto w1 = start(1);
  first.join();
  ASSERT_THAT(w0, IsOk());
  ASSERT_THAT(w1, IsOk());
  EXPECT_THAT(Hawser({"list"}).out, AllOf(ContainsRegex("w0 +SERVING +0"),
                                          ContainsRegex("w1 +SERVING +1")));
}

TEST_F(JobCommandsTest, ErrorsOfCallNameTheFault) {
  Start();
  const struct {
    std::vector<std::string> arguments;
    int exit_code;
    const char* error;
  } kCases[] = {
      {{"w2", "cli.Add"}, 1, "worker 'w2'; its workers are 'w0', 'w1'"},
      {{"w1", "cli.None"}, 1, "does not have a function 'cli.None'"},
      {{"w1", "cli.Repeat", "\"a\""}, 1, "string(string, int64)"},
      {{"w1", "cli.Repeat", "a", "1"}, 1, "argument 1 is not JSON"},
      {{"w1", "cli.Repeat", "1", "1"}, 1, "argument 1 must be string"},
      {{"w1", "cli.Fail", "\"the text\""}, 2, "the text"},
      {{"w1", "cli.Fail", "\"a\\u001b[2J\""}, 2, "a\\x1b[2J"},
      {{"w1", "cli.Miss"}, 2, "no row"},
      {{"w1", "cli.Never", "--timeout=0.2"}, 4, "w1"},
      {{"w1", "cli.Copies", "1", "0"}, 2, "count is not positive"},
      {{"w1", "cli.Copies", "1"}, 1, "stream Tensor(Tensor, int64)"},
      {{"w1", "cli.Hull", "[[1, 2]]"},
       1,
       "argument 1[0] must be cli.Range{low: double, high: double}, not [1,2]"},
      {{"w1", "cli.Hull", R"([{"low": 1, "high": "2"}])"},
       1,
       "argument 1[0].high must be double, not \"2\""},
      {{"w1", "cli.Hull", R"([{"low": 1}])"},
       1,
       "argument 1[0] does not have the field 'high' of cli.Range"},
      {{"w1", "cli.Clamp", "1", "1"}, 1, "argument 1 is a cli.Angle"},
      {{"w1", "cli.Clamp", R"({"type": "list<", "value": 1})", "1"},
       1,
       "'list<' is not a type"},
      {{"--job", "other", "w1", "cli.Add"}, 1, "has joined job 'other'"},
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
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.err, HasSubstr("no such service"));
  const std::string gone = workers_[1]->agent().info().address;
  ASSERT_THAT(workers_[1]->Shutdown(), IsOk());
  const Outcome stopped = Hawser({"health", master_, gone});
  EXPECT_EQ(stopped.exit_code, 3);
  EXPECT_THAT(stopped.out, AllOf(HasSubstr(absl::StrCat(master_, " SERVING")),
                                 HasSubstr(absl::StrCat(gone, " NO_REPLY"))));
  const Outcome as_json = Hawser({"health", "--json", master_, gone});
  EXPECT_EQ(as_json.exit_code, 3);
  const json list = json::parse(as_json.out);
  EXPECT_EQ(list[0]["status"], "SERVING");
  EXPECT_FALSE(list[0].contains("error"));
  EXPECT_EQ(list[1]["address"], gone);
  EXPECT_EQ(list[1]["status"], "NO_REPLY");
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

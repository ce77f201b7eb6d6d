#include "launch/worker.h"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/auth/credentials.h"
#include "net/testing/test_credentials.h"
#include "rpc/functions/function.h"
#include "rpc/functions/function_registry.h"
#include "rref/rref.h"
#include "store/grpc/server.h"
#include "store/hash/store.h"

namespace hawser::launch {
namespace {

using async::IsOk;
using async::IsOkAndHolds;
using async::StatusIs;

inline constexpr rpc::Function<int64_t(int64_t)> kTwice{"worker_test.Twice"};

class WorkerTest : public testing::Test {
 protected:
  WorkerTest() {
    for (const char* name : {"RANK",
                             "WORLD_SIZE",
                             "ROLE_NAME",
                             "OMPI_COMM_WORLD_RANK",
                             "OMPI_COMM_WORLD_SIZE",
                             "PMI_RANK",
                             "TF_CONFIG",
                             "DMLC_ROLE",
                             "SLURM_PROCID",
                             "SLURM_NTASKS",
                             "SLURM_JOB_NODELIST",
                             "MASTER_ADDR",
                             "MASTER_PORT",
                             "HAWSER_INIT",
                             "HAWSER_INTERFACE",
                             "HAWSER_TLS_CERT",
                             "HAWSER_TLS_KEY",
                             "HAWSER_TLS_CA",
                             "HAWSER_TLS_CRL_DIR",
                             "HAWSER_TOKEN_FILE"}) {
      unsetenv(name);
    }
    EXPECT_THAT(registry_.Register(kTwice, [](int64_t x) { return 2 * x; }),
                IsOk());
  }

  rpc::FunctionRegistry registry_;
};

TEST_F(WorkerTest, TwoWorkersJoinThroughAStoreCallAndLeave) {
  store::HashStore store;
  auto start = [&](int rank) {
    WorkerOptions options;
    options.identity.rank = rank;
    options.identity.world_size = 2;
    options.meeting_place.store = &store;
    options.registry = &registry_;
    if (rank == 1) options.identity.roles = {"ps", "trainer"};
    return Worker::Start(std::move(options));
  };
  auto other = std::async(std::launch::async, start, 1);
  auto first = start(0);
  auto second = other.get();
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ((*first)->name(), "worker0");
  const auto known = (*first)->agent().FindWorker("worker1");
  ASSERT_THAT(known, IsOk());
  EXPECT_THAT(known->roles, testing::ElementsAre("ps", "trainer"));
  EXPECT_EQ((*second)->rank(), 1);
  EXPECT_EQ((*second)->world_size(), 2);
  EXPECT_EQ((*first)->master(), "");
  EXPECT_THAT((*first)->agent().Sync("worker1", kTwice, 4), IsOkAndHolds(8));
  {
    auto rref = rref::Remote((*second)->agent(), "worker0", kTwice, 5);
    ASSERT_THAT(rref, IsOk());
    EXPECT_THAT(rref->ToHere(), IsOkAndHolds(10));
  }
  auto shutdown =
      std::async(std::launch::async, [&] { return (*second)->Shutdown(); });
  EXPECT_THAT((*first)->Shutdown(), IsOk());
  EXPECT_THAT(shutdown.get(), IsOk());
  EXPECT_THAT((*first)->Shutdown(), IsOk());
}

TEST_F(WorkerTest, RankZeroServesTheStoreOfWorkersThatJoinAndLeave) {
  setenv("RANK", "0", 1);
  setenv("MASTER_PORT", "0", 1);
  WorkerOptions first_options;
  first_options.identity.name = "keeper";
  first_options.registry = &registry_;
  auto keeper = Worker::Start(std::move(first_options));
  ASSERT_THAT(keeper, IsOk());
  const std::string master = (*keeper)->master();
  setenv("MASTER_PORT", master.substr(master.rfind(':') + 1).c_str(), 1);
  for (int rank = 1; rank <= 2; ++rank) {
    setenv("RANK", std::to_string(rank).c_str(), 1);
    auto guest = Worker::Start({});
    ASSERT_THAT(guest, IsOk());
    EXPECT_EQ((*guest)->rank(), rank);
    EXPECT_EQ((*guest)->world_size(), std::nullopt);
    EXPECT_THAT((*guest)->agent().Sync("keeper", kTwice, rank),
                IsOkAndHolds(2 * rank));
    EXPECT_EQ((*guest)->agent().DebugInfo().count("store.calls"), 0u);
    EXPECT_THAT((*guest)->Shutdown(), IsOk());
  }
  std::map<std::string, std::string> counters = (*keeper)->agent().DebugInfo();
  const int64_t calls = std::stoll(counters["store.calls"]);
  EXPECT_GT(calls, 0);
  EXPECT_GT(std::stoll(counters["store.keys"]), 0);
  EXPECT_EQ(counters.count("store.waiting_calls"), 1u);
  EXPECT_THAT((*keeper)->store().Set("k", "v"), IsOk());
  EXPECT_GT(std::stoll((*keeper)->agent().DebugInfo()["store.calls"]), calls);
  EXPECT_THAT((*keeper)->Shutdown(), IsOk());
}

// Runs two workers that join through `url`. The address of rank 0 must contain
// `address`.
void ExpectWorldOfTwo(const std::string& url, rpc::FunctionRegistry& registry,
                      const std::string& bind_address,
                      const std::string& address) {
  auto start = [&](int rank) {
    WorkerOptions options;
    options.meeting_place.url =
        absl::StrCat(url, "?rank=", rank, "&world_size=2");
    options.registry = &registry;
    options.network.bind_address = bind_address;
    return Worker::Start(std::move(options));
  };
  auto other = std::async(std::launch::async, start, 1);
  auto first = start(0);
  auto second = other.get();
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(second, IsOk());
  EXPECT_THAT((*first)->agent().info().address, testing::HasSubstr(address));
  EXPECT_THAT((*second)->agent().Sync("worker0", kTwice, 4), IsOkAndHolds(8));
  auto shutdown =
      std::async(std::launch::async, [&] { return (*second)->Shutdown(); });
  EXPECT_THAT((*first)->Shutdown(), IsOk());
  EXPECT_THAT(shutdown.get(), IsOk());
}

// Starts the only worker of a job whose launcher has set these variables. Its
// store must lie at `host`.
void ExpectPlaced(const std::map<std::string, std::string>& variables,
                  const std::string& host,
                  const std::vector<std::string>& roles) {
  for (const auto& [name, value] : variables) {
    setenv(name.c_str(), value.c_str(), 1);
  }
  setenv("MASTER_PORT", "0", 1);
  auto worker = Worker::Start({});
  ASSERT_THAT(worker, IsOk());
  EXPECT_EQ((*worker)->rank(), 0);
  EXPECT_EQ((*worker)->name(), "worker0");
  EXPECT_EQ((*worker)->world_size(), 1);
  EXPECT_THAT((*worker)->master(), testing::StartsWith(host + ":"));
  const auto known = (*worker)->agent().FindWorker("worker0");
  ASSERT_THAT(known, IsOk());
  EXPECT_EQ(known->roles, roles);
  EXPECT_THAT((*worker)->Shutdown(), IsOk());
}

TEST_F(WorkerTest, MpiPlacesAWorker) {
  ExpectPlaced({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}},
               "127.0.0.1", {});
}

TEST_F(WorkerTest, SlurmPlacesAWorker) {
  ExpectPlaced({{"SLURM_PROCID", "0"},
                {"SLURM_NTASKS", "1"},
                {"SLURM_JOB_NODELIST", "localhost"}},
               "localhost", {});
}

TEST_F(WorkerTest, TheLauncherGivesARoleWithTheRank) {
  ExpectPlaced({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"ROLE_NAME", "trainer"}},
               "127.0.0.1", {"trainer"});
}

TEST_F(WorkerTest, OptionsTakePrecedenceOverTheLauncher) {
  setenv("SLURM_PROCID", "5", 1);
  setenv("SLURM_NTASKS", "6", 1);
  setenv("SLURM_JOB_NODELIST", "node[1-6]", 1);
  store::HashStore store;
  // Of another job than the shell that started it.
  auto worker = Worker::Start(
      {.identity = {.rank = 7}, .meeting_place = {.store = &store}});
  ASSERT_THAT(worker, IsOk());
  EXPECT_EQ((*worker)->world_size(), std::nullopt);
  setenv("RANK", "3", 1);
  setenv("WORLD_SIZE", "4", 1);
  setenv("ROLE_NAME", "server", 1);
  setenv("MASTER_ADDR", "nosuchhost.invalid", 1);
  setenv("MASTER_PORT", "1", 1);
  auto other = Worker::Start(
      {.identity = {.rank = 0, .world_size = 1, .roles = {"trainer"}},
       .meeting_place = {.master_address = "127.0.0.1", .master_port = 0}});
  ASSERT_THAT(other, IsOk());
  const auto known = (*other)->agent().FindWorker("worker0");
  ASSERT_THAT(known, IsOk());
  EXPECT_THAT(known->roles, testing::ElementsAre("trainer"));
  // WORLD_SIZE is of the worker's job, whatever its rank.
  EXPECT_THAT(Worker::Start({.identity = {.rank = 4},
                             .meeting_place = {.store = &store}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("rank 4 is outside the world of size "
                                          "4")));
}

TEST_F(WorkerTest, TwoWorkersJoinThroughAFile) {
  const std::string path = testing::TempDir() + "/worker_test_store";
  ExpectWorldOfTwo("file://" + path, registry_, "127.0.0.1:0", "127.0.0.1:");
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(WorkerTest, TwoWorkersJoinAndCallOverIpV6) {
  const auto probe = store::StoreServer::Start({.host = "::1"});
  if (!probe.ok()) {
    GTEST_SKIP() << "this machine has no IPv6 loopback: " << probe.status();
  }
  const int port = (*probe)->port();
  (*probe)->Shutdown();
  ExpectWorldOfTwo(absl::StrCat("tcp://[::1]:", port), registry_, "[::1]:0",
                   "[::1]:");
}

TEST_F(WorkerTest, PeersSeeInterfaceAndAdvertisedAddress) {
  store::HashStore store;
  WorkerOptions options;
  options.identity.rank = 0;
  options.meeting_place.store = &store;
  options.network.bind_address = "[::1]:0";
  options.network.interface = "lo";
  auto worker = Worker::Start(std::move(options));
  ASSERT_THAT(worker, IsOk());
  const std::string address = (*worker)->agent().info().address;
  EXPECT_THAT(address, testing::StartsWith("127.0.0.1:"));

  WorkerOptions translated;
  translated.identity.rank = 1;
  translated.meeting_place.store = &store;
  translated.network.advertise_address = "localhost:0";
  auto other = Worker::Start(std::move(translated));
  ASSERT_THAT(other, IsOk());
  EXPECT_THAT((*other)->agent().info().address,
              testing::StartsWith("localhost:"));

  setenv("HAWSER_INTERFACE", "nosuch0", 1);
  WorkerOptions wrong;
  wrong.identity.rank = 2;
  wrong.meeting_place.store = &store;
  EXPECT_THAT(Worker::Start(std::move(wrong)),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(WorkerTest, ContradictingUrlsAreRejected) {
  setenv("HAWSER_INIT", "http://h", 1);
  EXPECT_THAT(Worker::Start({}), StatusIs(absl::StatusCode::kInvalidArgument,
                                          testing::HasSubstr("http://h")));
  WorkerOptions options;
  options.meeting_place.url = "tcp://127.0.0.1:1?rank=1";
  options.identity.rank = 2;
  EXPECT_THAT(Worker::Start(std::move(options)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("rank is 1 in the store's URL and 2 "
                                          "in the options")));
  WorkerOptions both;
  both.meeting_place.url = "env://";
  both.meeting_place.master_address = "127.0.0.1";
  EXPECT_THAT(Worker::Start(std::move(both)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("meeting_place.url excludes")));
  WorkerOptions no_port;
  no_port.meeting_place.url = "tcp://127.0.0.1:0?rank=1";
  EXPECT_THAT(
      Worker::Start(std::move(no_port)),
      StatusIs(absl::StatusCode::kInvalidArgument, testing::HasSubstr("port")));
}

TEST_F(WorkerTest, JobWithTlsAndTokenRejectsOtherCredentials) {
  net::TestAuthority authority;
  net::TestAuthority other_authority;
  const std::string token = authority.Write("token", std::string(64, 'a'));
  auto options_of = [&](net::TestAuthority& issuer, int rank, int port) {
    WorkerOptions options;
    options.identity.rank = rank;
    options.meeting_place.master_port = port;
    options.registry = &registry_;
    options.network.credentials = issuer.Issue("worker" + std::to_string(rank));
    options.network.credentials.token_path = token;
    return options;
  };
  auto keeper = Worker::Start(options_of(authority, 0, 0));
  ASSERT_THAT(keeper, IsOk());
  const std::string master = (*keeper)->master();
  const int port = std::stoi(master.substr(master.rfind(':') + 1));

  auto guest = Worker::Start(options_of(authority, 1, port));
  ASSERT_THAT(guest, IsOk());
  EXPECT_THAT((*guest)->agent().Sync("worker0", kTwice, 4), IsOkAndHolds(8));

  WorkerOptions wrong_token = options_of(authority, 2, port);
  wrong_token.network.credentials.token_path =
      authority.Write("wrong", std::string(64, 'b'));
  EXPECT_THAT(Worker::Start(std::move(wrong_token)),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       testing::HasSubstr("token")));
  EXPECT_THAT(Worker::Start(options_of(other_authority, 3, port)),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       testing::HasSubstr("handshake")));
  WorkerOptions of_another = options_of(authority, 4, port);
  of_another.identity.name = "worker1";
  EXPECT_THAT(Worker::Start(std::move(of_another)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("hawser://default/worker4")));
  EXPECT_THAT((*guest)->Shutdown(), IsOk());
  EXPECT_THAT((*keeper)->Shutdown(), IsOk());
}

TEST_F(WorkerTest, LimitsReachTheAgentAndItsServer) {
  EXPECT_THAT(Worker::Start({.identity = {.rank = 0},
                             .meeting_place = {.master_port = 0},
                             .limits = {.calls = {.max_calls = 0}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("max_calls")));
  EXPECT_THAT(Worker::Start(
                  {.identity = {.rank = 0},
                   .meeting_place = {.master_port = 0},
                   .network = {.grpc = {.limits = {.max_metadata_bytes = 0}}}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("max_metadata_bytes")));
  EXPECT_THAT(Worker::Start({.identity = {.rank = 0},
                             .meeting_place = {.master_port = 0}},
                            {.references = {.max_references_per_peer = 0}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("max_references_per_peer")));
  EXPECT_THAT(Worker::Start({.identity = {.rank = 0},
                             .meeting_place = {.master_port = 0}},
                            {.streams = {.max_streams_per_reader = 0}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("max_streams_per_reader")));
  EXPECT_THAT(Worker::Start({.identity = {.rank = 0},
                             .meeting_place = {.master_port = 0}},
                            {.contexts = {.max_contexts = 0}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("max_contexts")));
}

TEST_F(WorkerTest, OptionsOfGrpcReachTheTransport) {
  store::HashStore store;
  auto worker = Worker::Start({.identity = {.rank = 0},
                               .meeting_place = {.store = &store},
                               .registry = &registry_,
                               .network = {.grpc = {.max_message_bytes = 64}}});
  ASSERT_THAT(worker, IsOk());
  rpc::Agent& agent = (*worker)->agent();
  EXPECT_THAT(agent.Sync("worker0", kTwice, 4),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       testing::HasSubstr("max_message_bytes")));
}

TEST_F(WorkerTest, InsecureNetworkInGrpcOptionsIsRejected) {
  EXPECT_THAT(
      Worker::Start({.identity = {.rank = 0},
                     .meeting_place = {.master_port = 0},
                     .network = {.grpc = {.allow_insecure_network = true}}}),
      StatusIs(absl::StatusCode::kInvalidArgument,
               testing::HasSubstr("allow_insecure_network")));
}

TEST_F(WorkerTest, ErrorsNameTheVariablesOfTheLauncher) {
  setenv("SLURM_PROCID", "first", 1);
  EXPECT_THAT(Worker::Start({}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("SLURM_PROCID is 'first'")));
  setenv("DMLC_ROLE", "scheduler", 1);
  EXPECT_THAT(Worker::Start({}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("the role 'scheduler' without a "
                                          "rank")));
}

TEST_F(WorkerTest, ErrorsNameMissingAndWrongSettings) {
  EXPECT_THAT(Worker::Start({}), StatusIs(absl::StatusCode::kInvalidArgument,
                                          testing::HasSubstr("RANK")));
  setenv("RANK", "one", 1);
  EXPECT_THAT(Worker::Start({}), StatusIs(absl::StatusCode::kInvalidArgument,
                                          testing::HasSubstr("'one'")));
  setenv("RANK", "2", 1);
  setenv("WORLD_SIZE", "2", 1);
  EXPECT_THAT(Worker::Start({}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("rank 2 is outside the world of "
                                          "size 2")));
  setenv("WORLD_SIZE", "3", 1);
  setenv("MASTER_PORT", "70000", 1);
  EXPECT_THAT(Worker::Start({}), StatusIs(absl::StatusCode::kInvalidArgument,
                                          testing::HasSubstr("70000")));
}

}  // namespace
}  // namespace hawser::launch

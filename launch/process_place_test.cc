#include "launch/process_place.h"

#include <map>
#include <string>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::launch {
namespace {

using async::IsOk;
using async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Optional;

using Variables = std::map<std::string, std::string>;

absl::StatusOr<ProcessPlace> Place(const Variables& variables) {
  return PlaceFromEnvironment([&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

const Variables& Torchrun() {
  static const auto* const variables =
      new Variables{{"RANK", "3"},
                    {"WORLD_SIZE", "4"},
                    {"LOCAL_RANK", "1"},
                    {"LOCAL_WORLD_SIZE", "2"},
                    {"GROUP_RANK", "1"},
                    {"GROUP_WORLD_SIZE", "2"},
                    {"ROLE_NAME", "trainer"},
                    {"ROLE_RANK", "2"},
                    {"ROLE_WORLD_SIZE", "3"},
                    {"MASTER_ADDR", "node0"},
                    {"MASTER_PORT", "29501"},
                    {"TORCHELASTIC_RESTART_COUNT", "1"},
                    {"TORCHELASTIC_MAX_RESTARTS", "5"},
                    {"TORCHELASTIC_RUN_ID", "job"}};
  return *variables;
}

TEST(ProcessPlaceTest, EmptyEnvironmentSaysNothing) {
  const auto place = Place({{"RANK", ""}});
  ASSERT_THAT(place, IsOk());
  EXPECT_EQ(place->source, PlaceSource::kNone);
  EXPECT_EQ(place->rank, std::nullopt);
  EXPECT_EQ(place->master_address, "");
}

TEST(ProcessPlaceTest, WorldSizeAloneIsReadWithoutALauncher) {
  auto place = Place({{"WORLD_SIZE", "3"}});
  ASSERT_THAT(place, IsOk());
  EXPECT_EQ(place->source, PlaceSource::kNone);
  EXPECT_EQ(place->rank, std::nullopt);
  EXPECT_THAT(place->world_size, Optional(3));
  place = Place({{"WORLD_SIZE", "3"}, {"SLURM_PROCID", "0"}});
  ASSERT_THAT(place, IsOk());
  EXPECT_EQ(place->world_size, std::nullopt);
}

TEST(ProcessPlaceTest, Torchrun) {
  const auto place = Place(Torchrun());
  ASSERT_THAT(place, IsOk());
  EXPECT_EQ(place->source, PlaceSource::kTorchrun);
  EXPECT_THAT(place->rank, Optional(3));
  EXPECT_THAT(place->world_size, Optional(4));
  EXPECT_THAT(place->local_rank, Optional(1));
  EXPECT_THAT(place->local_world_size, Optional(2));
  EXPECT_THAT(place->node_rank, Optional(1));
  EXPECT_THAT(place->num_nodes, Optional(2));
  EXPECT_EQ(place->role, "trainer");
  EXPECT_THAT(place->role_rank, Optional(2));
  EXPECT_THAT(place->role_world_size, Optional(3));
  EXPECT_EQ(place->master_address, "node0");
  EXPECT_THAT(place->master_port, Optional(29501));
  EXPECT_EQ(place->restart_count, 1);
  EXPECT_EQ(place->max_restarts, 5);
  EXPECT_EQ(place->run_id, "job");
}

TEST(ProcessPlaceTest, OpenMpi) {
  const auto place = Place({{"OMPI_COMM_WORLD_RANK", "3"},
                            {"OMPI_COMM_WORLD_SIZE", "4"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                            {"MASTER_ADDR", "node0"}});
  ASSERT_THAT(place, IsOk());
  EXPECT_EQ(place->source, PlaceSource::kMpi);
  EXPECT_THAT(place->rank, Optional(3));
  EXPECT_THAT(place->world_size, Optional(4));
  EXPECT_THAT(place->local_rank, Optional(1));
  EXPECT_THAT(place->local_world_size, Optional(2));
  EXPECT_EQ(place->master_address, "node0");
}

TEST(ProcessPlaceTest, OtherMpi) {
  const auto place = Place({{"PMI_RANK", "1"},
                            {"PMI_SIZE", "2"},
                            {"MPI_LOCALRANKID", "0"},
                            {"MPI_LOCALNRANKS", "1"}});
  ASSERT_THAT(place, IsOk());
  EXPECT_EQ(place->source, PlaceSource::kMpi);
  EXPECT_THAT(place->rank, Optional(1));
  EXPECT_THAT(place->world_size, Optional(2));
  EXPECT_THAT(place->local_rank, Optional(0));
  EXPECT_THAT(place->local_world_size, Optional(1));
}

TEST(ProcessPlaceTest, TensorFlow) {
  const std::string cluster =
      R"({"cluster": {"chief": ["a:1"], "worker": ["b:2", "c:3"],
          "ps": ["d:4"]}, "task": )";
  const auto worker =
      Place({{"TF_CONFIG", cluster + R"({"type": "worker", "index": 1}})"}});
  ASSERT_THAT(worker, IsOk());
  EXPECT_EQ(worker->source, PlaceSource::kTensorFlow);
  EXPECT_THAT(worker->rank, Optional(2));
  EXPECT_THAT(worker->world_size, Optional(4));
  EXPECT_EQ(worker->role, "worker");
  EXPECT_THAT(worker->role_rank, Optional(1));
  EXPECT_THAT(worker->role_world_size, Optional(2));
  EXPECT_EQ(worker->master_address, "a");
  EXPECT_THAT(worker->master_port, Optional(1));
  const auto evaluator =
      Place({{"TF_CONFIG", cluster + R"({"type": "evaluator", "index": 0}})"}});
  ASSERT_THAT(evaluator, IsOk());
  EXPECT_EQ(evaluator->rank, std::nullopt);
  EXPECT_EQ(evaluator->role, "evaluator");
}

TEST(ProcessPlaceTest, ParameterServer) {
  Variables variables = {{"DMLC_ROLE", "worker"},
                         {"DMLC_PS_ROOT_URI", "node0"},
                         {"DMLC_PS_ROOT_PORT", "9000"},
                         {"DMLC_NUM_WORKER", "3"},
                         {"DMLC_NUM_SERVER", "2"}};
  auto place = Place(variables);
  ASSERT_THAT(place, IsOk());
  EXPECT_EQ(place->source, PlaceSource::kParameterServer);
  EXPECT_EQ(place->rank, std::nullopt);
  EXPECT_THAT(place->world_size, Optional(5));
  EXPECT_EQ(place->role, "worker");
  EXPECT_THAT(place->role_world_size, Optional(3));
  EXPECT_EQ(place->master_address, "node0");
  EXPECT_THAT(place->master_port, Optional(9000));
  variables["DMLC_WORKER_ID"] = "1";
  place = Place(variables);
  ASSERT_THAT(place, IsOk());
  EXPECT_THAT(place->rank, Optional(3));
  variables["DMLC_ROLE"] = "server";
  variables["DMLC_SERVER_ID"] = "1";
  place = Place(variables);
  ASSERT_THAT(place, IsOk());
  EXPECT_THAT(place->rank, Optional(1));
}

TEST(ProcessPlaceTest, Slurm) {
  Variables variables = {{"SLURM_PROCID", "5"},
                         {"SLURM_NTASKS", "6"},
                         {"SLURM_LOCALID", "1"},
                         {"SLURM_NTASKS_PER_NODE", "2"},
                         {"SLURM_NODEID", "2"},
                         {"SLURM_NNODES", "3"},
                         {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.1"}};
  auto place = Place(variables);
  ASSERT_THAT(place, IsOk());
  EXPECT_EQ(place->source, PlaceSource::kSlurm);
  EXPECT_THAT(place->rank, Optional(5));
  EXPECT_THAT(place->world_size, Optional(6));
  EXPECT_THAT(place->local_rank, Optional(1));
  EXPECT_THAT(place->local_world_size, Optional(2));
  EXPECT_THAT(place->node_rank, Optional(2));
  EXPECT_THAT(place->num_nodes, Optional(3));
  EXPECT_EQ(place->master_address, "10.0.0.1");
  const struct {
    const char* list;
    const char* first;
  } kLists[] = {{"gpu[03-05,7],cpu1", "gpu03"},
                {"gpu[7]", "gpu7"},
                {"a,b", "a"},
                {"a", "a"},
                {"r[1-2]-x,y", "r1-x"},
                {"g[1,3-4]", "g1"}};
  for (const auto& [list, first] : kLists) {
    variables["SLURM_JOB_NODELIST"] = list;
    place = Place(variables);
    ASSERT_THAT(place, IsOk());
    EXPECT_EQ(place->master_address, first);
  }
}

TEST(ProcessPlaceTest, LaunchersHaveAnOrderOfPrecedence) {
  Variables variables = Torchrun();
  variables.insert({{"OMPI_COMM_WORLD_RANK", "0"},
                    {"TF_CONFIG", R"({"task": {"type": "ps", "index": 0}})"},
                    {"DMLC_ROLE", "server"},
                    {"SLURM_PROCID", "0"}});
  const struct {
    const char* variable;
    PlaceSource source;
  } kOrder[] = {{"RANK", PlaceSource::kTorchrun},
                {"OMPI_COMM_WORLD_RANK", PlaceSource::kMpi},
                {"TF_CONFIG", PlaceSource::kTensorFlow},
                {"DMLC_ROLE", PlaceSource::kParameterServer},
                {"SLURM_PROCID", PlaceSource::kSlurm}};
  for (const auto& [variable, source] : kOrder) {
    const auto place = Place(variables);
    ASSERT_THAT(place, IsOk());
    EXPECT_EQ(place->source, source) << variable;
    variables.erase(variable);
  }
}

TEST(ProcessPlaceTest, WrongVariableIsNamedWithItsValue) {
  const struct {
    const char* variable;
    const char* value;
    Variables others;
  } kCases[] = {
      {"RANK", "x", {}},
      {"RANK", "-1", {}},
      {"WORLD_SIZE", "0", {{"RANK", "0"}}},
      {"WORLD_SIZE", "many", {}},
      {"TORCHELASTIC_RESTART_COUNT", "y", {{"RANK", "0"}}},
      {"MASTER_PORT", "70000", {}},
      {"OMPI_COMM_WORLD_SIZE", "two", {{"OMPI_COMM_WORLD_RANK", "0"}}},
      {"PMI_RANK", "1.5", {}},
      {"TF_CONFIG", "{", {}},
      {"TF_CONFIG", "[]", {}},
      {"TF_CONFIG", R"({"task": {"type": 1, "index": 0}})", {}},
      {"TF_CONFIG", R"({"task": {"type": "a", "index": -1}})", {}},
      {"TF_CONFIG",
       R"({"cluster": [], "task": {"type": "a", "index": 0}})",
       {}},
      {"TF_CONFIG",
       R"({"cluster": {"ps": [1]}, "task": {"type": "ps", "index": 0}})",
       {}},
      {"TF_CONFIG",
       R"({"cluster": {"ps": ["a:1"]}, "task": {"type": "ps", "index": 1}})",
       {}},
      {"DMLC_ROLE", "boss", {}},
      {"DMLC_PS_ROOT_PORT", "0", {{"DMLC_ROLE", "worker"}}},
      {"SLURM_PROCID", "a", {}},
      {"SLURM_JOB_NODELIST", "gpu[", {{"SLURM_PROCID", "0"}}},
      {"SLURM_JOB_NODELIST", "gpu[]", {{"SLURM_PROCID", "0"}}},
  };
  for (const auto& [variable, value, others] : kCases) {
    Variables variables = others;
    variables[variable] = value;
    EXPECT_THAT(Place(variables),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(variable), HasSubstr(value))));
  }
  EXPECT_THAT(Place({{"RANK", "4"}, {"WORLD_SIZE", "4"}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("RANK and the variables beside it: rank 4 "
                                 "is outside the world of size 4")));
}

TEST(ProcessPlaceTest, TaskBeyondTheRangeOfRanksIsWrong) {
  EXPECT_THAT(Place({{"TF_CONFIG",
                      R"({"cluster": {"chief": ["a:1"], "worker": ["b:1"]},)"
                      R"( "task": {"type": "worker", "index": 2147483647}})"}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace hawser::launch

// Fuzz test: arbitrary values of the environment variables by which launchers
// describe a process.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/check.h"
#include "bazel/fuzz/fuzz_input.h"
#include "launch/process_place.h"

namespace hawser::launch {
namespace {

constexpr const char* kVariables[] = {
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "GROUP_WORLD_SIZE",
    "ROLE_NAME",
    "ROLE_RANK",
    "ROLE_WORLD_SIZE",
    "TORCHELASTIC_RESTART_COUNT",
    "TORCHELASTIC_MAX_RESTARTS",
    "TORCHELASTIC_RUN_ID",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "PMI_RANK",
    "PMI_SIZE",
    "MPI_LOCALRANKID",
    "MPI_LOCALNRANKS",
    "TF_CONFIG",
    "DMLC_ROLE",
    "DMLC_NUM_SERVER",
    "DMLC_NUM_WORKER",
    "DMLC_PS_ROOT_URI",
    "DMLC_PS_ROOT_PORT",
    "DMLC_SERVER_ID",
    "DMLC_WORKER_ID",
    "SLURM_PROCID",
    "SLURM_NTASKS",
    "SLURM_LOCALID",
    "SLURM_NTASKS_PER_NODE",
    "SLURM_NODEID",
    "SLURM_NNODES",
    "SLURM_JOB_NODELIST",
    "SLURM_LAUNCH_NODE_IPADDR",
    "MASTER_ADDR",
    "MASTER_PORT",
};

constexpr const char* kValues[] = {
    "0",          "1",          "2",  "65535",  "65536",  "1073741823",
    "2147483647", "2147483648", "-1", "server", "worker", "gpu[03-05,7],cpu1",
};

// A value that has a meaning, or any text.
std::string MakeValue(fuzz::FuzzInput& input) {
  const size_t choice = input.Below(std::size(kValues) + 4);
  if (choice < std::size(kValues)) return kValues[choice];
  std::string text(input.Bytes());
  // A variable ends with its first zero.
  return text.substr(0, text.find('\0'));
}

// JSON of the form that TF_CONFIG has.
std::string MakeConfig(fuzz::FuzzInput& input) {
  constexpr const char* kTypes[] = {"chief", "master", "worker", "ps", "other"};
  const auto type = [&] { return kTypes[input.Below(std::size(kTypes))]; };
  std::string cluster;
  for (size_t i = input.Below(4); i > 0; --i) {
    absl::StrAppend(&cluster, cluster.empty() ? "" : ",", "\"", type(),
                    "\":[\"a:1\"", input.Bool() ? ",\"b:2\"" : "", "]");
  }
  return absl::StrCat("{\"cluster\":{", cluster, "},\"task\":{\"type\":\"",
                      type(), "\",\"index\":", MakeValue(input), "}}");
}

void CheckPlace(const ProcessPlace& place) {
  const auto check = [](const std::optional<int>& number, int least) {
    HAWSER_CHECK(!number.has_value() || *number >= least) << *number;
  };
  check(place.rank, 0);
  check(place.world_size, 0);
  check(place.local_rank, 0);
  check(place.local_world_size, 1);
  check(place.node_rank, 0);
  check(place.num_nodes, 1);
  check(place.role_rank, 0);
  check(place.master_port, 0);
  HAWSER_CHECK(!place.master_port.has_value() || *place.master_port <= 65535);
  HAWSER_CHECK(!place.rank.has_value() || !place.world_size.has_value() ||
               *place.rank < *place.world_size);
}

}  // namespace
}  // namespace hawser::launch

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hawser::launch;
  hawser::fuzz::FuzzInput input(data, size);
  std::map<std::string, std::string, std::less<>> environment;
  while (!input.empty()) {
    const char* const variable = kVariables[input.Below(std::size(kVariables))];
    environment[variable] =
        variable == std::string_view("TF_CONFIG") && input.Bool()
            ? MakeConfig(input)
            : MakeValue(input);
  }
  const absl::StatusOr<ProcessPlace> place =
      PlaceFromEnvironment([&](const char* variable) -> const char* {
        const auto found = environment.find(variable);
        return found == environment.end() ? nullptr : found->second.c_str();
      });
  if (place.ok()) {
    CheckPlace(*place);
  } else {
    HAWSER_CHECK(absl::IsInvalidArgument(place.status())) << place.status();
  }
  return 0;
}

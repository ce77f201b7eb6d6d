#include "launch/process_place.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "nlohmann/json.hpp"
#include "store/endpoint.h"

namespace hawser::launch {
namespace {

using nlohmann::json;
using Variables = std::function<const char*(const char* variable)>;

constexpr int kMost = std::numeric_limits<int>::max();
constexpr int kMaxPort = 65535;

absl::Status Wrong(const char* variable, const std::string& value,
                   const std::string& remedy) {
  return absl::InvalidArgumentError(absl::StrCat("the environment variable ",
                                                 variable, " is '", value,
                                                 "'; it must be ", remedy));
}

std::string Text(const Variables& get, const char* variable) {
  const char* const text = get(variable);
  return text == nullptr ? "" : text;
}

bool IsSet(const Variables& get, const char* variable) {
  return !Text(get, variable).empty();
}

// Reads a number into `number` if the variable is set.
template <class Number>
absl::Status Read(const Variables& get, const char* variable, int least,
                  int most, Number& number) {
  const std::string text = Text(get, variable);
  if (text.empty()) return absl::OkStatus();
  int value = 0;
  if (!absl::SimpleAtoi(text, &value) || value < least || value > most) {
    return Wrong(variable, text,
                 absl::StrCat("an integer from ", least, " to ", most));
  }
  number = value;
  return absl::OkStatus();
}

template <class Number>
absl::Status ReadRank(const Variables& get, const char* variable,
                      Number& number) {
  return Read(get, variable, 0, kMost, number);
}

template <class Number>
absl::Status ReadSize(const Variables& get, const char* variable,
                      Number& number) {
  return Read(get, variable, 1, kMost, number);
}

absl::Status ReadTorchrun(const Variables& get, ProcessPlace& place) {
  RETURN_IF_ERROR(ReadRank(get, "RANK", place.rank));
  RETURN_IF_ERROR(ReadSize(get, "WORLD_SIZE", place.world_size));
  RETURN_IF_ERROR(ReadRank(get, "LOCAL_RANK", place.local_rank));
  RETURN_IF_ERROR(ReadSize(get, "LOCAL_WORLD_SIZE", place.local_world_size));
  RETURN_IF_ERROR(ReadRank(get, "GROUP_RANK", place.node_rank));
  RETURN_IF_ERROR(ReadSize(get, "GROUP_WORLD_SIZE", place.num_nodes));
  RETURN_IF_ERROR(ReadRank(get, "ROLE_RANK", place.role_rank));
  RETURN_IF_ERROR(ReadSize(get, "ROLE_WORLD_SIZE", place.role_world_size));
  RETURN_IF_ERROR(
      ReadRank(get, "TORCHELASTIC_RESTART_COUNT", place.restart_count));
  RETURN_IF_ERROR(
      ReadRank(get, "TORCHELASTIC_MAX_RESTARTS", place.max_restarts));
  place.role = Text(get, "ROLE_NAME");
  place.run_id = Text(get, "TORCHELASTIC_RUN_ID");
  return absl::OkStatus();
}

absl::Status ReadMpi(const Variables& get, ProcessPlace& place) {
  if (IsSet(get, "OMPI_COMM_WORLD_RANK")) {
    RETURN_IF_ERROR(ReadRank(get, "OMPI_COMM_WORLD_RANK", place.rank));
    RETURN_IF_ERROR(ReadSize(get, "OMPI_COMM_WORLD_SIZE", place.world_size));
    RETURN_IF_ERROR(
        ReadRank(get, "OMPI_COMM_WORLD_LOCAL_RANK", place.local_rank));
    return ReadSize(get, "OMPI_COMM_WORLD_LOCAL_SIZE", place.local_world_size);
  }
  RETURN_IF_ERROR(ReadRank(get, "PMI_RANK", place.rank));
  RETURN_IF_ERROR(ReadSize(get, "PMI_SIZE", place.world_size));
  RETURN_IF_ERROR(ReadRank(get, "MPI_LOCALRANKID", place.local_rank));
  return ReadSize(get, "MPI_LOCALNRANKS", place.local_world_size);
}

absl::Status ReadTensorFlow(const Variables& get, ProcessPlace& place) {
  const std::string text = Text(get, "TF_CONFIG");
  const auto malformed = [&text](const std::string& remedy) {
    return Wrong("TF_CONFIG", text, remedy);
  };
  const json config = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object() || !config.contains("task") ||
      !config["task"].is_object()) {
    return malformed("a JSON object with the object 'task'");
  }
  const json& task = config["task"];
  if (!task.contains("type") || !task["type"].is_string() ||
      !task.contains("index") || !task["index"].is_number_integer() ||
      task["index"] < 0 || task["index"] > kMost) {
    return malformed("JSON whose 'task' has a 'type' and an 'index' from 0");
  }
  const int index = task["index"].get<int>();
  place.role = task["type"].get<std::string>();
  place.role_rank = index;
  const json cluster = config.value("cluster", json::object());
  if (!cluster.is_object()) return malformed("JSON with an object 'cluster'");
  int size = 0;
  for (const char* type : {"chief", "master", "worker", "ps"}) {
    if (!cluster.contains(type)) continue;
    const json& tasks = cluster[type];
    if (!tasks.is_array()) {
      return malformed("JSON whose 'cluster' has a list of each type");
    }
    if (place.role == type) {
      place.role_world_size = static_cast<int>(tasks.size());
      if (index >= *place.role_world_size) {
        return malformed("JSON whose 'task' is in its 'cluster'");
      }
      place.rank = size + index;
    }
    if (size == 0 && !tasks.empty()) {
      if (!tasks[0].is_string()) {
        return malformed("JSON whose 'cluster' has addresses");
      }
      const absl::StatusOr<store::Endpoint> first =
          store::ParseEndpoint(tasks[0].get<std::string>());
      if (!first.ok()) return malformed("JSON with addresses host:port");
      place.master_address = first->host;
      place.master_port = first->port;
    }
    size += static_cast<int>(tasks.size());
  }
  if (size > 0) place.world_size = size;
  return absl::OkStatus();
}

absl::Status ReadParameterServer(const Variables& get, ProcessPlace& place) {
  place.role = Text(get, "DMLC_ROLE");
  const bool is_server = place.role == "server";
  if (!is_server && place.role != "worker" && place.role != "scheduler") {
    return Wrong("DMLC_ROLE", place.role, "server, worker or scheduler");
  }
  place.master_address = Text(get, "DMLC_PS_ROOT_URI");
  RETURN_IF_ERROR(
      Read(get, "DMLC_PS_ROOT_PORT", 1, kMaxPort, place.master_port));
  std::optional<int> num_servers;
  std::optional<int> num_workers;
  // Half of the range, so that the sum is in it.
  RETURN_IF_ERROR(Read(get, "DMLC_NUM_SERVER", 0, kMost / 2, num_servers));
  RETURN_IF_ERROR(Read(get, "DMLC_NUM_WORKER", 0, kMost / 2, num_workers));
  if (num_servers.has_value() && num_workers.has_value()) {
    place.world_size = *num_servers + *num_workers;
  }
  if (place.role == "scheduler") return absl::OkStatus();
  place.role_world_size = is_server ? num_servers : num_workers;
  RETURN_IF_ERROR(Read(get, is_server ? "DMLC_SERVER_ID" : "DMLC_WORKER_ID", 0,
                       kMost / 2, place.role_rank));
  if (is_server) {
    place.rank = place.role_rank;
  } else if (place.role_rank.has_value() && num_servers.has_value()) {
    place.rank = *num_servers + *place.role_rank;
  }
  return absl::OkStatus();
}

// The first host of a list as SLURM writes it: "gpu[03-05,7],cpu1".
absl::StatusOr<std::string> FirstHost(const std::string& list) {
  const size_t end = list.find_first_of("[,");
  if (end == std::string::npos || list[end] == ',') return list.substr(0, end);
  const size_t close = list.find(']', end);
  const size_t number_end = list.find_first_of("-,]", end);
  if (close == std::string::npos || number_end == end + 1) {
    return Wrong("SLURM_JOB_NODELIST", list, "a list such as gpu[03-05,7]");
  }
  const size_t rest_end = list.find_first_of("[,", close);
  return absl::StrCat(
      list.substr(0, end), list.substr(end + 1, number_end - end - 1),
      list.substr(close + 1, std::min(rest_end, list.size()) - close - 1));
}

absl::Status ReadSlurm(const Variables& get, ProcessPlace& place) {
  RETURN_IF_ERROR(ReadRank(get, "SLURM_PROCID", place.rank));
  RETURN_IF_ERROR(ReadSize(get, "SLURM_NTASKS", place.world_size));
  RETURN_IF_ERROR(ReadRank(get, "SLURM_LOCALID", place.local_rank));
  RETURN_IF_ERROR(
      ReadSize(get, "SLURM_NTASKS_PER_NODE", place.local_world_size));
  RETURN_IF_ERROR(ReadRank(get, "SLURM_NODEID", place.node_rank));
  RETURN_IF_ERROR(ReadSize(get, "SLURM_NNODES", place.num_nodes));
  const std::string list = Text(get, "SLURM_JOB_NODELIST");
  if (list.empty()) {
    place.master_address = Text(get, "SLURM_LAUNCH_NODE_IPADDR");
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(place.master_address, FirstHost(list));
  return absl::OkStatus();
}

struct Launcher {
  // The variable by which the launcher is recognised.
  const char* variable;
  PlaceSource source;
  absl::Status (*read)(const Variables& get, ProcessPlace& place);
};

// In the order of precedence.
constexpr Launcher kLaunchers[] = {
    {"RANK", PlaceSource::kTorchrun, &ReadTorchrun},
    {"OMPI_COMM_WORLD_RANK", PlaceSource::kMpi, &ReadMpi},
    {"PMI_RANK", PlaceSource::kMpi, &ReadMpi},
    {"TF_CONFIG", PlaceSource::kTensorFlow, &ReadTensorFlow},
    {"DMLC_ROLE", PlaceSource::kParameterServer, &ReadParameterServer},
    {"SLURM_PROCID", PlaceSource::kSlurm, &ReadSlurm},
};

}  // namespace

absl::StatusOr<ProcessPlace> PlaceFromEnvironment() {
  return PlaceFromEnvironment(
      [](const char* variable) { return std::getenv(variable); });
}

absl::StatusOr<ProcessPlace> PlaceFromEnvironment(const Variables& get) {
  ProcessPlace place;
  for (const Launcher& launcher : kLaunchers) {
    if (!IsSet(get, launcher.variable)) continue;
    place.source = launcher.source;
    RETURN_IF_ERROR(launcher.read(get, place));
    if (place.rank.has_value() && place.world_size.has_value() &&
        *place.rank >= *place.world_size) {
      return absl::InvalidArgumentError(
          absl::StrCat(launcher.variable, " and the variables beside it: rank ",
                       *place.rank, " is outside the world of size ",
                       *place.world_size, ": ranks begin at 0"));
    }
    break;
  }
  if (place.source == PlaceSource::kNone) {
    RETURN_IF_ERROR(ReadSize(get, "WORLD_SIZE", place.world_size));
  }
  if (IsSet(get, "MASTER_ADDR")) {
    place.master_address = Text(get, "MASTER_ADDR");
  }
  RETURN_IF_ERROR(Read(get, "MASTER_PORT", 0, kMaxPort, place.master_port));
  return place;
}

}  // namespace hawser::launch

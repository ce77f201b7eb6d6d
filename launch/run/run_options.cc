#include "launch/run/run_options.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "async/status_macros.h"
#include "launch/master_endpoint.h"
#include "launch/run/node.h"
#include "net/name.h"
#include "store/endpoint.h"

namespace hawser::launch {
namespace {

constexpr int kMaxNodes = 4096;
constexpr int kMaxRestarts = 1'000'000;
constexpr int kMaxKillDelay = 24 * 3600;
constexpr int kDefaultPort = 29500;
constexpr char kDefaultAddress[] = "127.0.0.1";

absl::Status WrongFlag(const char* flag, const std::string& value,
                       const std::string& remedy) {
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, "=", value, ": ", remedy));
}

// The number in `text`, or `otherwise` if it is empty.
absl::StatusOr<int> Number(const char* flag, const std::string& text,
                           int otherwise, int least, int most) {
  if (text.empty()) return otherwise;
  int number = 0;
  if (absl::SimpleAtoi(text, &number) && number >= least && number <= most) {
    return number;
  }
  return WrongFlag(flag, text,
                   absl::StrCat("must be a number from ", least, " to ", most));
}

// The number of CPUs that this process may use.
int NumCpus() {
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0) return 1;
  return std::max(1, CPU_COUNT(&cpus));
}

absl::StatusOr<int> ProcessesPerNode(const std::string& text) {
  if (text == "auto" || text == "cpu") return NumCpus();
  if (text.empty()) return 1;
  int number = 0;
  if (absl::SimpleAtoi(text, &number) && number >= 1 &&
      number <= kMaxProcessesPerNode) {
    return number;
  }
  return WrongFlag(
      "nproc-per-node", text,
      absl::StrCat("must be a number from 1 to ", kMaxProcessesPerNode,
                   ", or auto or cpu, the number of CPUs"));
}

absl::StatusOr<int> NumNodes(const std::string& text) {
  const std::vector<std::string> range = absl::StrSplit(text, ':');
  if (range.size() == 2) {
    ASSIGN_OR_RETURN(const int least,
                     Number("nnodes", range[0], 0, 1, kMaxNodes));
    ASSIGN_OR_RETURN(const int most,
                     Number("nnodes", range[1], 0, 1, kMaxNodes));
    if (least == most && least != 0) return least;
    return WrongFlag("nnodes", text,
                     "a job has a fixed number of nodes: write one number");
  }
  return Number("nnodes", text, 1, 1, kMaxNodes);
}

absl::Status CheckName(const char* flag, const std::string& name) {
  const absl::Status valid = net::ValidateName("name", name);
  if (valid.ok()) return absl::OkStatus();
  return WrongFlag(flag, name, std::string(valid.message()));
}

// The roles in "server=2,trainer=3", or one role with `num_processes`.
absl::StatusOr<std::vector<JobRole>> Roles(const RunFlags& flags) {
  if (!absl::StrContains(flags.role, '=')) {
    ASSIGN_OR_RETURN(const int num_processes,
                     ProcessesPerNode(flags.nproc_per_node));
    const std::string name = flags.role.empty() ? kDefaultRole : flags.role;
    RETURN_IF_ERROR(CheckName("role", name));
    return std::vector<JobRole>{{name, num_processes}};
  }
  if (!flags.nproc_per_node.empty()) {
    return WrongFlag(
        "role", flags.role,
        "has the numbers of processes: leave out --nproc-per-node");
  }
  std::vector<JobRole> roles;
  int num_processes = 0;
  for (const absl::string_view part : absl::StrSplit(flags.role, ',')) {
    const std::pair<std::string, std::string> pair =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    JobRole role{pair.first, 0};
    RETURN_IF_ERROR(CheckName("role", role.name));
    if (!absl::SimpleAtoi(pair.second, &role.count) || role.count < 1 ||
        role.count > kMaxProcessesPerNode ||
        (num_processes += role.count) > kMaxProcessesPerNode) {
      return WrongFlag(
          "role", flags.role,
          absl::StrCat("'", part, "' must be NAME=N, with at most ",
                       kMaxProcessesPerNode, " processes on a node"));
    }
    for (const JobRole& earlier : roles) {
      if (earlier.name == role.name) {
        return WrongFlag("role", flags.role,
                         absl::StrCat("'", role.name, "' occurs twice"));
      }
    }
    roles.push_back(std::move(role));
  }
  return roles;
}

absl::StatusOr<store::StoreUrl> RendezvousUrl(const std::string& endpoint,
                                              int num_nodes) {
  const absl::StatusOr<store::StoreUrl> parsed = store::ParseStoreUrl(
      absl::StrContains(endpoint, "://") ? endpoint
                                         : absl::StrCat("tcp://", endpoint));
  if (!parsed.ok()) {
    return WrongFlag("rdzv-endpoint", endpoint,
                     std::string(parsed.status().message()));
  }
  store::StoreUrl url = *parsed;
  if (url.rank.has_value() || url.world_size.has_value()) {
    return WrongFlag("rdzv-endpoint", endpoint,
                     "leave out rank and world_size: use --node-rank and "
                     "--nnodes");
  }
  if (url.scheme == store::StoreUrl::Scheme::kEnv) {
    url.scheme = store::StoreUrl::Scheme::kTcp;
    ASSIGN_OR_RETURN(url.endpoint, MasterEndpoint());
  }
  if (url.scheme == store::StoreUrl::Scheme::kTcp && url.endpoint.port == 0 &&
      num_nodes > 1) {
    return WrongFlag("rdzv-endpoint", endpoint,
                     "several nodes need a port other than 0");
  }
  return url;
}

absl::Status CheckStandalone(const RunFlags& flags, int num_nodes) {
  if (!flags.standalone) return absl::OkStatus();
  const char* const conflict = num_nodes != 1                 ? "nnodes"
                               : !flags.rdzv_endpoint.empty() ? "rdzv-endpoint"
                               : !flags.master_port.empty()   ? "master-port"
                                                              : nullptr;
  if (conflict == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--standalone runs one node on a free port: leave out --", conflict));
}

// Where the processes find rank 0, and where the launchers meet.
absl::Status ReadAddresses(const RunFlags& flags, RunOptions& options) {
  options.master_address = flags.master_addr;
  ASSIGN_OR_RETURN(const int port, Number("master-port", flags.master_port,
                                          kDefaultPort, 0, 65535));
  if (!flags.rdzv_endpoint.empty()) {
    ASSIGN_OR_RETURN(options.rendezvous,
                     RendezvousUrl(flags.rdzv_endpoint, options.num_nodes));
    if (!flags.master_port.empty() && port != 0) options.master_port = port;
    return absl::OkStatus();
  }
  if (options.num_nodes > 1) {
    // The launchers meet at this port, so the processes get another one.
    if (port == 0) {
      return WrongFlag("master-port", "0",
                       "several nodes need a port other than 0");
    }
    store::StoreUrl url;
    url.scheme = store::StoreUrl::Scheme::kTcp;
    url.endpoint = {
        flags.master_addr.empty() ? kDefaultAddress : flags.master_addr, port};
    options.rendezvous = std::move(url);
    return absl::OkStatus();
  }
  if (!flags.standalone && port != 0) options.master_port = port;
  if (options.master_address.empty()) options.master_address = kDefaultAddress;
  return absl::OkStatus();
}

absl::StatusOr<StreamChoice> Streams(const char* flag,
                                     const std::string& text) {
  if (text.empty()) return StreamChoice();
  absl::StatusOr<StreamChoice> choice = ParseStreamChoice(text);
  if (!choice.ok())
    return WrongFlag(flag, text, std::string(choice.status().message()));
  return choice;
}

}  // namespace

absl::StatusOr<RunOptions> ParseRunFlags(const RunFlags& flags,
                                         std::vector<std::string> command) {
  RunOptions options;
  options.command = std::move(command);
  if (options.command.empty() || options.command[0].empty()) {
    return absl::InvalidArgumentError(
        "the program is missing: hawser run [FLAGS] PROGRAM [ARGUMENTS]");
  }
  ASSIGN_OR_RETURN(options.num_nodes, NumNodes(flags.nnodes));
  RETURN_IF_ERROR(CheckStandalone(flags, options.num_nodes));
  if (options.num_nodes > 1 && flags.node_rank.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--nnodes=", options.num_nodes,
                     " needs --node-rank: the number of "
                     "this node, from 0 to ",
                     options.num_nodes - 1));
  }
  ASSIGN_OR_RETURN(options.node_rank, Number("node-rank", flags.node_rank, 0, 0,
                                             options.num_nodes - 1));
  ASSIGN_OR_RETURN(options.roles, Roles(flags));
  if (!flags.rdzv_id.empty()) {
    RETURN_IF_ERROR(CheckName("rdzv-id", flags.rdzv_id));
    options.run_id = flags.rdzv_id;
  }
  ASSIGN_OR_RETURN(
      options.max_restarts,
      Number("max-restarts", flags.max_restarts, 0, 0, kMaxRestarts));
  RETURN_IF_ERROR(ReadAddresses(flags, options));
  ASSIGN_OR_RETURN(options.redirects, Streams("redirects", flags.redirects));
  ASSIGN_OR_RETURN(options.tee, Streams("tee", flags.tee));
  options.log_directory = flags.log_dir;
  if (!options.log_directory.empty() && flags.redirects.empty() &&
      flags.tee.empty()) {
    options.tee.others = {.output = true, .error = true};
  }
  ASSIGN_OR_RETURN(const int kill_delay,
                   Number("kill-delay", flags.kill_delay, 5, 0, kMaxKillDelay));
  options.kill_delay = absl::Seconds(kill_delay);
  options.allow_insecure_network = flags.allow_insecure_network;
  return options;
}

}  // namespace hawser::launch

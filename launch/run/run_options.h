// Options of `hawser run`.

#ifndef HAWSER_LAUNCH_RUN_RUN_OPTIONS_H_
#define HAWSER_LAUNCH_RUN_RUN_OPTIONS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "launch/job/job_options.h"
#include "launch/run/stream_choice.h"
#include "store/store_url.h"

namespace hawser::launch {

// The flags as they are written; empty if they are not set.
struct RunFlags {
  std::string nproc_per_node = {};
  std::string nnodes = {};
  std::string node_rank = {};
  bool standalone = false;
  std::string master_addr = {};
  std::string master_port = {};
  std::string rdzv_endpoint = {};
  std::string rdzv_id = {};
  std::string max_restarts = {};
  std::string role = {};
  std::string log_dir = {};
  std::string redirects = {};
  std::string tee = {};
  std::string kill_delay = {};
  bool allow_insecure_network = false;
};

// The role of processes without --role, as torchrun names it.
inline constexpr char kDefaultRole[] = "default";

struct RunOptions {
  // The program and its arguments; not empty.
  std::vector<std::string> command = {};
  int num_nodes = 1;
  int node_rank = 0;
  // Processes of this node, in the order of their local ranks; not empty.
  std::vector<JobRole> roles = {};
  // The store through which the launchers of all nodes meet; with tcp:// that
  // of node 0 serves it. nullopt: the job has one node and needs none.
  std::optional<store::StoreUrl> rendezvous = {};
  std::string run_id = "none";
  int max_restarts = 0;
  // The address at which the processes find rank 0. Empty: node 0 chooses.
  std::string master_address = {};
  // nullopt: a free port of node 0, another one for each attempt.
  std::optional<int> master_port = {};
  // Directory for logs. Empty: a new one among the system's temporary files, if
  // `redirects` or `tee` needs one.
  std::string log_directory = {};
  // Streams that go to a file instead of the launcher's output, and streams
  // that go to both.
  StreamChoice redirects = {};
  StreamChoice tee = {};
  // From SIGTERM to SIGKILL.
  absl::Duration kill_delay = absl::Seconds(5);
  bool allow_insecure_network = false;
};

// kInvalidArgument names the flag and its permitted values.
absl::StatusOr<RunOptions> ParseRunFlags(const RunFlags& flags,
                                         std::vector<std::string> command);

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_RUN_RUN_OPTIONS_H_

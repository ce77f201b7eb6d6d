#ifndef HAWSER_LAUNCH_PROCESS_PLACE_H_
#define HAWSER_LAUNCH_PROCESS_PLACE_H_

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace hawser::launch {

// The launcher whose variables describe this process.
enum class PlaceSource {
  kNone,
  kTorchrun,
  kMpi,
  kTensorFlow,
  kParameterServer,
  kSlurm,
};

// The place of this process in a job, as the environment describes it.
struct ProcessPlace {
  PlaceSource source = PlaceSource::kNone;
  std::optional<int> rank = {};
  std::optional<int> world_size = {};
  std::optional<int> local_rank = {};
  std::optional<int> local_world_size = {};
  // The number of the node and of nodes.
  std::optional<int> node_rank = {};
  std::optional<int> num_nodes = {};
  // Empty: not known.
  std::string role = {};
  std::optional<int> role_rank = {};
  std::optional<int> role_world_size = {};
  // The address of rank 0. Empty: not known.
  std::string master_address = {};
  std::optional<int> master_port = {};
  // Starts of the job after a failure before this one.
  int restart_count = 0;
  int max_restarts = 0;
  // Empty: not known.
  std::string run_id = {};
};

// Reads the variables of the first of these launchers that has set its own:
//
//   1. torchrun and `hawser run`: RANK, WORLD_SIZE, LOCAL_RANK,
//      LOCAL_WORLD_SIZE, GROUP_RANK, GROUP_WORLD_SIZE, ROLE_NAME, ROLE_RANK,
//      ROLE_WORLD_SIZE, TORCHELASTIC_RESTART_COUNT, TORCHELASTIC_MAX_RESTARTS,
//      TORCHELASTIC_RUN_ID. Recognised by RANK.
//   2. MPI: OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE; or PMI_RANK,
//      PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS. Recognised by the rank.
//   3. TensorFlow: TF_CONFIG, with ranks in the order chief, master, worker,
//      ps. The first of these tasks is rank 0. Another task, such as an
//      evaluator, has a role but no rank.
//   4. ps-lite: DMLC_ROLE, DMLC_NUM_SERVER, DMLC_NUM_WORKER,
//      DMLC_PS_ROOT_URI, DMLC_PS_ROOT_PORT, with ranks in the order server,
//      worker, if DMLC_SERVER_ID or DMLC_WORKER_ID numbers the process. The
//      scheduler has no rank. Recognised by DMLC_ROLE.
//   5. SLURM: SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID,
//      SLURM_NTASKS_PER_NODE, SLURM_NODEID, SLURM_NNODES. The address is the
//      first host of SLURM_JOB_NODELIST, otherwise SLURM_LAUNCH_NODE_IPADDR.
//      Recognised by SLURM_PROCID. Last, since it is also set for the shell in
//      which a user starts another launcher.
//
// Without any of them, WORLD_SIZE alone is read, for a process that has its
// rank from elsewhere. MASTER_ADDR and MASTER_PORT, where they are set, replace
// the address and the port of each. An empty variable counts as not set.
// kInvalidArgument names the variable and its value.
absl::StatusOr<ProcessPlace> PlaceFromEnvironment();

// The same, with the variables that `get` returns; null: not set.
absl::StatusOr<ProcessPlace> PlaceFromEnvironment(
    const std::function<const char*(const char* variable)>& get);

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_PROCESS_PLACE_H_

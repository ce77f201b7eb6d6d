// Benchmark of the parameter server, compared with its peers in the same run.
//
//   ./bazelw run -c opt //benchmarks:ps -- --quick
//
// In one process and one thread, random keys of a full table, compared with a
// loop over an absl::flat_hash_map (plain_map):
//   in_process_pull_16, _64   rows of 16 floats of 10 million, batches of
//   16,384
//                             keys; and of 64 floats of 1 million, 13,312 keys
//   in_process_push_16, _64   the same rows updated by row-wise Adagrad
//   push_key_ranges_64        the same rows, in a table with 256 key ranges
//   that
//                             have learning rates of their own, compared with
//                             a table without ranges (no_ranges)
//   memory_per_row_16         bytes of a row of 16 floats with one number of
//                             state, compared with its payload
//
//   snapshot_training         rows a second that one thread updates, as in
//                             in_process_push_64, while another writes
//                             snapshots to --directory, compared with the same
//                             without a snapshot (no_snapshot)
//   snapshot_write            bytes a second of these snapshots, synced,
//                             compared with a file of as many zeros (write)
//
// Client and server in two processes, which share the machine's cores: rows of
// 64 floats of 1 million, requests of 13,312 random keys, two in flight:
//   pull_64_tcp, push_64_tcp              over a socket
//   pull_64_same_host, push_64_same_host  over shared memory, the default
// compared with the loop in one process (plain_map), with ps::SparseTable in
// one process (in_process), and with Redis (redis: pipelined MGET or MSET).
//   click_steps               samples a second of two trainers, which sum 26
//                             rows of 64 floats a sample on the server, with
//                             SGD, compared with a parameter server in PyTorch
//                             (pytorch) and with PyTorch in one process
//                             (pytorch_one_process)
//   pull_1k_tcp_p50, pull_1k_same_host_p50  median time of a pull of 1,000 rows
//                             of 16 floats, compared with a call that returns
//                             its 64 bytes (small_call), and with that call
//                             and a pull of the same rows in one process
//                             (in_process_and_call)
//
// Turns of both sides alternate. The ratio is computed for each pair of turns.
#include <cstdio>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/status/status.h"
#include "benchmarks/click_trainer.h"
#include "benchmarks/ps_server_cases.h"
#include "benchmarks/ps_table_cases.h"
#include "benchmarks/ps_workload.h"
#include "benchmarks/store_process.h"
#include "benchmarks/table_pair.h"

ABSL_FLAG(bool, quick, false, "Finish within 50 seconds.");
ABSL_FLAG(std::string, only, "", "Run only the cases that begin with this.");
ABSL_FLAG(std::string, directory, "/var/tmp", "Directory of snapshots.");
ABSL_FLAG(std::string, serve, "",
          "Internal: the server that this process runs.");
ABSL_FLAG(std::string, python, "/usr/bin/python3",
          "Python interpreter with PyTorch.");
ABSL_FLAG(int, index, 0, "Internal: number of the trainer.");
ABSL_FLAG(std::string, store, "", "Internal: address of the store.");
ABSL_FLAG(bool, same_host, true, "Internal: whether shared memory is used.");

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Benchmark of the parameter server.");
  absl::ParseCommandLine(argc, argv);
  const std::string serve = absl::GetFlag(FLAGS_serve);
  if (serve == "store") return hawser::benchmarks::ServeStore();
  if (serve == "trainer") {
    return hawser::benchmarks::TrainClicks(absl::GetFlag(FLAGS_store),
                                           absl::GetFlag(FLAGS_index));
  }
  if (serve == "tables") {
    return hawser::benchmarks::ServeTables(absl::GetFlag(FLAGS_store),
                                           absl::GetFlag(FLAGS_same_host));
  }
  const hawser::benchmarks::PsRun run = {
      .quick = absl::GetFlag(FLAGS_quick),
      .only = absl::GetFlag(FLAGS_only),
      .directory = absl::GetFlag(FLAGS_directory),
      .python = absl::GetFlag(FLAGS_python)};
  absl::Status status = hawser::benchmarks::RunTableCases(run);
  if (status.ok()) status = hawser::benchmarks::RunServerCases(run);
  if (!status.ok()) {
    std::fprintf(stderr, "ps: %s\n", std::string(status.message()).c_str());
    return 1;
  }
  return 0;
}

#include "cli/run_program.h"

#include <unistd.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "async/status_macros.h"
#include "launch/run/console.h"
#include "launch/run/launcher.h"
#include "launch/run/run_options.h"
#include "telemetry/terminal.h"

namespace hawser::cli {
namespace {

absl::Status RunProgram(const launch::RunFlags& flags,
                        CommandContext& context) {
  ASSIGN_OR_RETURN(const launch::RunOptions options,
                   launch::ParseRunFlags(flags, context.program));
  launch::Console console(
      {.output_colours = telemetry::CanRedraw(STDOUT_FILENO),
       .error_colours = telemetry::CanRedraw(STDERR_FILENO)});
  ASSIGN_OR_RETURN(context.exit_code, launch::RunProgram(options, &console));
  return absl::OkStatus();
}

}  // namespace

void AddRun(CLI::App& hawser, CommandContext& context) {
  CLI::App* run = hawser.add_subcommand(
      kRunCommand,
      "Run a program as the processes of a distributed job, with the flags and "
      "the environment of torchrun: hawser run [OPTIONS] PROGRAM ARGUMENTS.");
  auto flags = std::make_shared<launch::RunFlags>();
  const auto add = [run](const char* name, std::string& value, const char* type,
                         const char* variable, const char* description) {
    run->add_option(name, value, description)
        ->type_name(type)
        ->envname(variable);
  };
  add("--nproc-per-node", flags->nproc_per_node, "N", "PET_NPROC_PER_NODE",
      "Processes on this node; auto or cpu: one for each CPU. Default: 1.");
  add("--role", flags->role, "ROLE=N,...", "PET_ROLE",
      "Roles of processes and the number of each on this node, instead of "
      "--nproc-per-node; or the name of one role.");
  add("--nnodes", flags->nnodes, "N", "PET_NNODES",
      "Nodes of the job. Default: 1.");
  add("--node-rank", flags->node_rank, "N", "PET_NODE_RANK",
      "The number of this node, from 0.");
  run->add_flag("--standalone", flags->standalone,
                "Run one node on a free port.");
  add("--master-addr", flags->master_addr, "HOST", "PET_MASTER_ADDR",
      "Where processes find rank 0. Default: 127.0.0.1, or with several nodes "
      "the host of --rdzv-endpoint.");
  add("--master-port", flags->master_port, "PORT", "PET_MASTER_PORT",
      "The port of rank 0. Default: 29500, with --rdzv-endpoint a free one. "
      "With several nodes and without --rdzv-endpoint, the launchers meet "
      "there, and rank 0 gets a free one.");
  add("--rdzv-endpoint", flags->rdzv_endpoint, "HOST:PORT|URL",
      "PET_RDZV_ENDPOINT",
      "Where the launchers of all nodes meet: an address at which node 0 "
      "serves a store, or the URL of a store.");
  add("--rdzv-id", flags->rdzv_id, "NAME", "PET_RDZV_ID",
      "Name of the run, the same on all nodes. Default: none.");
  add("--max-restarts", flags->max_restarts, "N", "PET_MAX_RESTARTS",
      "How often to restart all processes after one has failed. Default: 0.");
  add("--log-dir", flags->log_dir, "DIR", "PET_LOG_DIR",
      "Directory for logs of the processes. Alone, it implies --tee=3.");
  add("--redirects", flags->redirects, "STREAMS", "PET_REDIRECTS",
      "Streams that go to logs only: 0 none, 1 stdout, 2 stderr, 3 both, or "
      "by local rank: 0:3,1:2. Default: 0.");
  add("--tee", flags->tee, "STREAMS", "PET_TEE",
      "Streams that also go to logs, in the same form. Default: 0.");
  add("--kill-delay", flags->kill_delay, "SECONDS", "HAWSER_KILL_DELAY",
      "Time from SIGTERM to SIGKILL. Default: 5.");
  run->add_flag("--allow-insecure-network", flags->allow_insecure_network,
                "Let node 0 serve the store at an address other than loopback "
                "without TLS.");
  run->callback(
      [flags, &context] { context.outcome = RunProgram(*flags, context); });
}

}  // namespace hawser::cli

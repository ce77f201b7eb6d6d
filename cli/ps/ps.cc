#include "cli/ps/ps.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/Validators.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "cli/ps/snapshots.h"
#include "cli/ps/status.h"
#include "cli/ps/tables.h"
#include "launch/termination_signals.h"
#include "launch/worker.h"
#include "launch/worker_options.h"
#include "ps/storage/push_log.h"
#include "ps/table_service.h"
#include "telemetry/log.h"

namespace hawser::cli {
namespace {

struct PsFlags {
  std::string name;
  int rank = -1;
  std::string init_url;
  std::string job = "default";
  std::string bind = "127.0.0.1:0";
  std::string advertise;
  std::string snapshot_directory;
  ps::PushLogging logging = ps::PushLogging::kOff;
  std::string metrics_address;
  bool metrics_allow_network = false;
};

absl::Status Serve(const PsFlags& flags) {
  // Before the first thread.
  const launch::TerminationSignals signals;
  launch::WorkerOptions options;
  options.identity.name = flags.name;
  if (flags.rank >= 0) options.identity.rank = flags.rank;
  options.identity.job = flags.job;
  options.meeting_place.url = flags.init_url;
  options.network.bind_address = flags.bind;
  options.network.advertise_address = flags.advertise;
  options.metrics.address = flags.metrics_address;
  options.metrics.allow_network = flags.metrics_allow_network;
  options.services.push_back(std::make_unique<ps::TableService>(
      ps::TableServiceOptions{.snapshot_directory = flags.snapshot_directory,
                              .logging = flags.logging}));
  ASSIGN_OR_RETURN(const std::unique_ptr<launch::Worker> worker,
                   launch::Worker::Start(std::move(options)));
  telemetry::Log(telemetry::LogSeverity::kInfo,
                 absl::StrCat("serving as '", worker->name(), "'"));
  return signals.Serve(
      [&](bool graceful) { return worker->Shutdown(graceful); });
}

}  // namespace

void AddPs(CLI::App& hawser, CommandContext& context) {
  auto flags = std::make_shared<PsFlags>();
  CLI::App& command = *hawser.add_subcommand(
      "ps",
      "Run a server of tables in a job until SIGTERM. Other settings, such as "
      "TLS, come from the environment, as for any worker.");
  command
      .add_option("--name", flags->name,
                  "The server's name, which is unique in the job. Default: "
                  "worker<rank>.")
      ->type_name("NAME");
  command
      .add_option("--rank", flags->rank, "The server's rank. Default: RANK.")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber);
  command
      .add_option("--init", flags->init_url,
                  "URL of the job's store, such as tcp://HOST:PORT. Default: "
                  "HAWSER_INIT, or the store of rank 0 at MASTER_ADDR and "
                  "MASTER_PORT.")
      ->type_name("URL");
  command.add_option("--job", flags->job, "The job's name.")
      ->type_name("NAME")
      ->capture_default_str();
  command
      .add_option("--bind", flags->bind,
                  "Address to listen on. Other than loopback, it needs TLS.")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  command
      .add_option("--advertise", flags->advertise,
                  "Address at which other workers reach the server, if it is "
                  "not --bind.")
      ->type_name("HOST:PORT");
  command
      .add_option("--snapshot-dir", flags->snapshot_directory,
                  "Directory of snapshots and logs.")
      ->type_name("DIR");
  const std::map<std::string, ps::PushLogging> modes = {
      {"off", ps::PushLogging::kOff},
      {"write", ps::PushLogging::kWrite},
      {"sync", ps::PushLogging::kSync}};
  command
      .add_option("--logging", flags->logging,
                  "off, write or sync: whether pushes are logged to "
                  "--snapshot-dir, so that they survive the end of the process "
                  "(write), or also of the machine (sync). Default: off.")
      ->type_name("MODE")
      ->transform(CLI::Transformer(modes).description(""));
  command
      .add_option("--metrics-addr", flags->metrics_address,
                  "Address of the pages /metrics, /healthz and /readyz. "
                  "Default: HAWSER_METRICS_ADDRESS; without it, there are "
                  "none.")
      ->type_name("HOST:PORT");
  command.add_flag("--metrics-allow-network", flags->metrics_allow_network,
                   "Permit --metrics-addr other than loopback, where everyone "
                   "who can connect can read the pages.");
  const std::vector<CLI::Option*> of_server = command.get_options(
      [](const CLI::Option* option) { return !option->get_lnames().empty(); });
  for (const AddCommand add :
       {&AddPsStatus, &AddPsTables, &AddPsSnapshot, &AddPsRestore}) {
    add(command, context);
  }
  for (CLI::App* subcommand :
       command.get_subcommands([](CLI::App*) { return true; })) {
    for (CLI::Option* option : of_server) subcommand->excludes(option);
  }
  // Runs after the callback of a subcommand.
  command.callback([&command, flags, &context] {
    if (command.get_subcommands().empty()) context.outcome = Serve(*flags);
  });
}

}  // namespace hawser::cli

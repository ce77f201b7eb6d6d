#include "cli/ps/ps.h"

#include <algorithm>
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
#include "cli/ps/export.h"
#include "cli/ps/server_config.h"
#include "cli/ps/snapshots.h"
#include "cli/ps/status.h"
#include "cli/ps/tables.h"
#include "launch/termination_signals.h"
#include "launch/worker.h"
#include "proto/ps_server.pb.h"
#include "telemetry/log.h"

namespace hawser::cli {
namespace {

struct PsFlags {
  std::string config_path;
  bool print_config = false;
  // The settings that flags set.
  v1::TableServerConfig config;
};

absl::Status Serve(const PsFlags& flags, const CommandContext& context) {
  v1::TableServerConfig config = DefaultServerConfig();
  if (!flags.config_path.empty()) {
    ASSIGN_OR_RETURN(const v1::TableServerConfig file,
                     ReadServerConfig(flags.config_path));
    config.MergeFrom(file);
  }
  config.MergeFrom(flags.config);
  if (flags.print_config) {
    context.out << ServerConfigText(config);
    return absl::OkStatus();
  }
  // Before the first thread.
  const launch::TerminationSignals signals;
  ASSIGN_OR_RETURN(const std::unique_ptr<launch::Worker> worker,
                   launch::Worker::Start(WorkerOptionsOf(config)));
  telemetry::Log(telemetry::LogSeverity::kInfo,
                 absl::StrCat("serving as '", worker->name(), "'"));
  return signals.Serve(
      [&](bool graceful) { return worker->Shutdown(graceful); });
}

// Adds a flag whose value becomes a field of the configuration.
CLI::Option& AddSetting(CLI::App& command,
                        const std::shared_ptr<PsFlags>& flags,
                        const std::string& name, const std::string& type,
                        std::string* (v1::TableServerConfig::*field)(),
                        const std::string& description) {
  return *command
              .add_option_function<std::string>(
                  name,
                  [flags, field](const std::string& value) {
                    *(flags->config.*field)() = value;
                  },
                  description)
              ->type_name(type);
}

// Adds a flag for a number of TableServerLimits.
void AddLimit(CLI::App& command, const std::shared_ptr<PsFlags>& flags,
              const std::string& field, int64_t default_value,
              void (v1::TableServerLimits::*set)(int64_t),
              const std::string& description) {
  std::string name = absl::StrCat("--", field);
  std::replace(name.begin(), name.end(), '_', '-');
  CLI::Option& option =
      *command
           .add_option_function<int64_t>(
               name,
               [flags, set](int64_t value) {
                 (flags->config.mutable_limits()->*set)(value);
               },
               description)
           ->type_name("N")
           ->default_str(absl::StrCat(default_value));
  for (const SettingRange& range : SettingRanges()) {
    if (range.field == field) {
      option.check(CLI::Range(range.min, range.max).description(""));
    }
  }
}

void AddLimits(CLI::App& command, const std::shared_ptr<PsFlags>& flags) {
  using Limits = v1::TableServerLimits;
  const Limits defaults = DefaultServerConfig().limits();
  AddLimit(command, flags, "max_tables", defaults.max_tables(),
           &Limits::set_max_tables, "Tables on the server.");
  AddLimit(command, flags, "max_keys", defaults.max_keys(),
           &Limits::set_max_keys, "Keys of a pull or push.");
  AddLimit(command, flags, "max_rows", defaults.max_rows(),
           &Limits::set_max_rows,
           "Rows of a table on the server. 0: as many as fit into three "
           "quarters of the machine's memory.");
  AddLimit(command, flags, "max_row_bytes", defaults.max_row_bytes(),
           &Limits::set_max_row_bytes, "Bytes of the rows of a pull or push.");
}

void AddSettings(CLI::App& command, const std::shared_ptr<PsFlags>& flags) {
  using Config = v1::TableServerConfig;
  const Config defaults = DefaultServerConfig();
  AddSetting(command, flags, "--name", "NAME", &Config::mutable_name,
             "The server's name, which is unique in the job. Default: "
             "worker<rank>.");
  command
      .add_option_function<int>(
          "--rank", [flags](int rank) { flags->config.set_rank(rank); },
          "The server's rank. Default: RANK.")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber);
  AddSetting(command, flags, "--init", "URL", &Config::mutable_init_url,
             "URL of the job's store, such as tcp://HOST:PORT. Default: "
             "HAWSER_INIT, or the store of rank 0 at MASTER_ADDR and "
             "MASTER_PORT.");
  AddSetting(command, flags, "--job", "NAME", &Config::mutable_job,
             "The job's name.")
      .default_str(defaults.job());
  AddSetting(command, flags, "--bind", "HOST:PORT", &Config::mutable_bind,
             "Address to listen on. Other than loopback, it needs TLS.")
      .default_str(defaults.bind());
  AddSetting(command, flags, "--advertise", "HOST:PORT",
             &Config::mutable_advertise,
             "Address at which other workers reach the server, if it is not "
             "--bind.");
  AddSetting(command, flags, "--snapshot-dir", "DIR",
             &Config::mutable_snapshot_directory,
             "Directory of snapshots and logs.");
  AddSetting(command, flags, "--disk-dir", "DIR",
             &Config::mutable_disk_directory,
             "Directory of rows beyond memory, for tables with rows in "
             "RocksDB.");
  const std::map<std::string, Config::Logging> modes = {
      {"off", Config::OFF}, {"write", Config::WRITE}, {"sync", Config::SYNC}};
  command
      .add_option_function<Config::Logging>(
          "--logging",
          [flags](Config::Logging mode) { flags->config.set_logging(mode); },
          "off, write or sync: whether pushes are logged to --snapshot-dir, so "
          "that they survive the end of the process (write), or also of the "
          "machine (sync). Default: off.")
      ->type_name("MODE")
      ->transform(CLI::Transformer(modes).description(""));
  command
      .add_option_function<std::string>(
          "--metrics-addr",
          [flags](const std::string& address) {
            flags->config.mutable_metrics()->set_address(address);
          },
          "Address of the pages /metrics, /healthz and /readyz. Default: "
          "HAWSER_METRICS_ADDRESS; without it, there are none.")
      ->type_name("HOST:PORT");
  command.add_flag_callback(
      "--metrics-allow-network",
      [flags] { flags->config.mutable_metrics()->set_allow_network(true); },
      "Permit --metrics-addr other than loopback, where everyone who can "
      "connect can read the pages.");
}

}  // namespace

void AddPs(CLI::App& hawser, CommandContext& context) {
  auto flags = std::make_shared<PsFlags>();
  CLI::App& command = *hawser.add_subcommand(
      "ps",
      "Run a server of tables in a job until SIGTERM. Other settings, such as "
      "TLS, come from the environment, as for any worker.");
  command
      .add_option("--config", flags->config_path,
                  "File with settings in the text format of protobuf "
                  "(proto/ps_server.proto). Flags override it.")
      ->type_name("FILE");
  command.add_flag("--print-config", flags->print_config,
                   "Print the settings, from the defaults, --config and the "
                   "flags, in that format, and exit.");
  AddSettings(command, flags);
  AddLimits(command, flags);
  const std::vector<CLI::Option*> of_server = command.get_options(
      [](const CLI::Option* option) { return !option->get_lnames().empty(); });
  for (const AddCommand add : {&AddPsStatus, &AddPsTables, &AddPsSnapshot,
                               &AddPsRestore, &AddPsExport}) {
    add(command, context);
  }
  for (CLI::App* subcommand :
       command.get_subcommands([](CLI::App*) { return true; })) {
    for (CLI::Option* option : of_server) subcommand->excludes(option);
  }
  // Runs after the callback of a subcommand.
  command.callback([&command, flags, &context] {
    if (command.get_subcommands().empty()) {
      context.outcome = Serve(*flags, context);
    }
  });
}

}  // namespace hawser::cli

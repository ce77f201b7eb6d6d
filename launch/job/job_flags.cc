#include "launch/job/job_flags.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "async/status_macros.h"
#include "launch/job/job_options.h"
#include "launch/job/launched_process.h"
#include "launch/process_place.h"
#include "launch/supervisor.h"
#include "net/auth/credentials.h"
#include "net/auth/credentials_options.h"
#include "rpc/membership/liveness_options.h"
#include "store/endpoint.h"
#include "store/store_url.h"

ABSL_FLAG(std::string, role, "",
          "Run one process of a job, of this role, instead of the whole job. "
          "Requires --index and --master.");
ABSL_FLAG(int, index, 0,
          "Index of this process among those of its --role, from 0.");
ABSL_FLAG(
    std::string, master, "",
    "The job's store: host:port, where the first process serves it, or a URL, "
    "such as etcd://host:port/job.");
ABSL_FLAG(bool, external_store, false,
          "Another process already serves the store at --master.");
ABSL_FLAG(
    std::string, tls_cert, "",
    "This process's certificate, PEM. Requires --tls_key and --tls_ca. In "
    "paths of credentials, \"{worker}\" stands for the process's name: its "
    "role and index, such as server0, or launcher.");
ABSL_FLAG(std::string, tls_key, "", "The key of --tls_cert, PEM, mode 0600.");
ABSL_FLAG(std::string, tls_ca, "",
          "The authority that must have signed the certificates of other "
          "processes, PEM.");
ABSL_FLAG(std::string, token_file, "",
          "The job's token, 64 hexadecimal digits, mode 0600.");
ABSL_FLAG(std::string, bind_address, "",
          "Address on which each process listens, host:port. Port 0 chooses a "
          "free port. Default: 127.0.0.1:0. Addresses other than loopback "
          "require TLS.");
ABSL_FLAG(std::string, interface, "",
          "Network interface whose address each process listens on, such as "
          "eth0.");
ABSL_FLAG(absl::Duration, silent_limit,
          hawser::rpc::LivenessOptions().silent_limit,
          "Silence after which the other processes declare a process lost. A "
          "process that has ended is detected sooner.");
ABSL_FLAG(absl::Duration, notice_period,
          hawser::launch::SupervisorOptions().notice_period,
          "Time for the other processes to report their errors after one has "
          "ended, before the launcher stops them.");

namespace hawser::launch {
namespace {

absl::Status CheckDuration(const char* flag, absl::Duration value,
                           absl::Duration above) {
  constexpr absl::Duration kMost = absl::Hours(24);
  if (value > above && value <= kMost) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, "=", absl::FormatDuration(value),
                   ": must be greater than ", absl::FormatDuration(above),
                   ", and ", absl::FormatDuration(kMost), " or less"));
}

absl::Status CheckRole(const JobOptions& options) {
  if (options.role.empty()) return absl::OkStatus();
  if (options.roles.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--role=", options.role,
        ": with the other flags, the program runs in one process"));
  }
  const int count = options.count(options.role);
  if (count == 0) {
    const auto name = [](std::string* out, const JobRole& role) {
      out->append(role.name);
    };
    return absl::InvalidArgumentError(
        absl::StrCat("--role=", options.role, ": must be ",
                     absl::StrJoin(options.roles, " or ", name)));
  }
  if (options.index >= 0 && options.index < count) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--index=", options.index, ": must be 0 to ", count - 1,
                   ", since the job has ", count, " processes of this role"));
}

// The URL of --master.
absl::StatusOr<std::string> MasterUrl(const std::string& master) {
  if (absl::StrContains(master, "://")) {
    RETURN_IF_ERROR(store::ParseStoreUrl(master));
    return master;
  }
  const absl::StatusOr<store::Endpoint> endpoint = store::ParseEndpoint(master);
  if (endpoint.ok() && endpoint->port != 0) {
    return absl::StrCat("tcp://", master);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--master=", master,
      ": --role requires host:port or a URL, the same for all processes"));
}

net::CredentialsOptions ReadCredentials(const std::string& worker) {
  const auto path = [&](const std::string& flag) {
    return absl::StrReplaceAll(flag, {{"{worker}", worker}});
  };
  net::CredentialsOptions credentials;
  credentials.certificate_path = path(absl::GetFlag(FLAGS_tls_cert));
  credentials.key_path = path(absl::GetFlag(FLAGS_tls_key));
  credentials.ca_path = path(absl::GetFlag(FLAGS_tls_ca));
  credentials.token_path = path(absl::GetFlag(FLAGS_token_file));
  return net::WithEnvironment(std::move(credentials));
}

}  // namespace

const char kJobFlagsFile[] = "launch/job/job_flags.cc";

absl::Status CheckAtLeast(const char* flag, int64_t value, int64_t least) {
  if (value >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, "=", value, ": must be ", least, " or greater"));
}

absl::StatusOr<JobOptions> ReadJobFlags(std::vector<JobRole> roles) {
  JobOptions options;
  options.roles = std::move(roles);
  options.role = absl::GetFlag(FLAGS_role);
  options.index = absl::GetFlag(FLAGS_index);
  options.master = absl::GetFlag(FLAGS_master);
  options.external_store = absl::GetFlag(FLAGS_external_store);
  options.bind_address = absl::GetFlag(FLAGS_bind_address);
  options.interface = absl::GetFlag(FLAGS_interface);
  options.silent_limit = absl::GetFlag(FLAGS_silent_limit);
  options.notice_period = absl::GetFlag(FLAGS_notice_period);
  RETURN_IF_ERROR(CheckDuration("silent_limit", options.silent_limit,
                                rpc::LivenessOptions().heartbeat_interval));
  RETURN_IF_ERROR(CheckDuration("notice_period", options.notice_period,
                                absl::ZeroDuration()));
  RETURN_IF_ERROR(CheckRole(options));
  if (!options.role.empty()) {
    ASSIGN_OR_RETURN(options.master, MasterUrl(options.master));
  }
  ASSIGN_OR_RETURN(const ProcessPlace place, PlaceFromEnvironment());
  ASSIGN_OR_RETURN(options, AtPlace(std::move(options), place));
  options.credentials = ReadCredentials(options.name());
  return options;
}

}  // namespace hawser::launch

#include "examples/mnist_ps/options.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "async/status_macros.h"
#include "launch/supervisor.h"
#include "net/auth/credentials.h"
#include "optim/make_update_rule.h"
#include "store/endpoint.h"
#include "store/store_url.h"

ABSL_FLAG(int, servers, 1, "Number of processes that store the parameters.");
ABSL_FLAG(int, trainers, 2, "Number of processes that compute gradients.");
ABSL_FLAG(std::string, role, "",
          "Run one process of a job, \"server\" or \"trainer\", instead of "
          "the whole job. Requires --index and --master.");
ABSL_FLAG(int, index, 0,
          "Index of this process among those of its --role, from 0.");
ABSL_FLAG(
    std::string, master, "",
    "The job's store: host:port, where server 0 serves it, or a URL, such as "
    "etcd://host:port/job.");
ABSL_FLAG(bool, external_store, false,
          "Another process already serves the store at --master.");
ABSL_FLAG(bool, local, false,
          "Train the same model in this process, without servers.");
ABSL_FLAG(std::string, data_dir, "",
          "Directory of MNIST's IDX files, plain or gzip. Default: synthetic "
          "digits.");
ABSL_FLAG(int64_t, holdout, 0,
          "Keep the last N samples for testing. With 0, test on the t10k files "
          "or on 2000 synthetic digits.");
ABSL_FLAG(int64_t, epochs, 5, "Passes over the training samples.");
ABSL_FLAG(int64_t, batch_size, 64, "Samples per step and trainer.");
ABSL_FLAG(std::string, optimizer, "SGD(lr=0.05,momentum=0.9)",
          "Update rule and its options, such as Adam(lr=0.001). The learning "
          "rate falls from lr to nearly 0 along half a cosine.");
ABSL_FLAG(uint64_t, seed, 1,
          "Seed of a --deterministic run, and of processes started with "
          "--role, which must all have the same seed.");
ABSL_FLAG(bool, deterministic, false,
          "Derive initial values and the order of samples from --seed. With "
          "one trainer, runs give equal results; the updates of several "
          "trainers interleave in any order.");
ABSL_FLAG(std::string, init, "",
          "Start from the parameters in this safetensors file.");
ABSL_FLAG(std::string, save, "",
          "Write the trained parameters to this safetensors file.");
ABSL_FLAG(
    std::string, tls_cert, "",
    "This process's certificate, PEM. Requires --tls_key and --tls_ca. In "
    "paths of credentials, \"{worker}\" stands for the process's name: "
    "server0, trainer0, ..., or launcher.");
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
ABSL_FLAG(int64_t, log_every, 0,
          "Print the loss of every Nth step with all digits. 0: never.");
ABSL_FLAG(absl::Duration, silent_limit,
          hawser::rpc::LivenessOptions().silent_limit,
          "Silence after which the other processes declare a process lost. A "
          "process that has ended is detected sooner.");
ABSL_FLAG(absl::Duration, notice_period,
          hawser::launch::SupervisorOptions().notice_period,
          "Time for the other processes to report their errors after one has "
          "ended, before the launcher stops them.");

namespace hawser::examples::mnist_ps {
namespace {

absl::Status AtLeast(const char* flag, int64_t value, int64_t least) {
  if (value >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, "=", value, ": must be ", least, " or greater"));
}

absl::Status CheckDuration(const char* flag, absl::Duration value,
                           absl::Duration above) {
  constexpr absl::Duration kMost = absl::Hours(24);
  if (value > above && value <= kMost) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, "=", absl::FormatDuration(value),
                   ": must be greater than ", absl::FormatDuration(above),
                   ", and ", absl::FormatDuration(kMost), " or less"));
}

absl::StatusOr<Role> ParseRole(const std::string& role, bool local) {
  if (local && !role.empty()) {
    return absl::InvalidArgumentError(
        "--local and --role exclude each other: give only one");
  }
  if (local) return Role::kLocal;
  if (role.empty()) return Role::kLauncher;
  if (role == "server") return Role::kServer;
  if (role == "trainer") return Role::kTrainer;
  return absl::InvalidArgumentError(
      absl::StrCat("--role=", role, ": must be server or trainer"));
}

absl::Status ReadMaster(Options& options) {
  if (absl::StrContains(options.master, "://")) {
    return store::ParseStoreUrl(options.master).status();
  }
  const absl::StatusOr<store::Endpoint> master =
      store::ParseEndpoint(options.master);
  if (!master.ok() || master->port == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--master=", options.master,
        ": --role requires host:port or a URL, the same for all processes"));
  }
  options.master = absl::StrCat("tcp://", options.master);
  return absl::OkStatus();
}

absl::Status CheckPlace(Options& options) {
  if (options.role != Role::kServer && options.role != Role::kTrainer) {
    return absl::OkStatus();
  }
  const int count = options.role == Role::kServer ? options.num_servers
                                                  : options.num_trainers;
  if (options.index < 0 || options.index >= count) {
    return absl::InvalidArgumentError(
        absl::StrCat("--index=", options.index, ": must be 0 to ", count - 1,
                     ", since the job has ", count, " processes of this role"));
  }
  return ReadMaster(options);
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

std::string ServerName(int index) { return absl::StrCat("server", index); }
std::string TrainerName(int index) { return absl::StrCat("trainer", index); }

net::Identity IdentityOf(const Options& options) {
  net::Identity identity{.job = "default", .worker = "launcher"};
  if (options.role == Role::kServer) {
    identity.worker = ServerName(options.index);
  }
  if (options.role == Role::kTrainer) {
    identity.worker = TrainerName(options.index);
  }
  return identity;
}

absl::StatusOr<Options> ParseOptions(int argc, char** argv) {
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  if (rest.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("unexpected argument ", rest[1]));
  }
  Options options;
  ASSIGN_OR_RETURN(options.role, ParseRole(absl::GetFlag(FLAGS_role),
                                           absl::GetFlag(FLAGS_local)));
  options.num_servers = absl::GetFlag(FLAGS_servers);
  options.num_trainers = absl::GetFlag(FLAGS_trainers);
  options.index = absl::GetFlag(FLAGS_index);
  options.master = absl::GetFlag(FLAGS_master);
  options.external_store = absl::GetFlag(FLAGS_external_store);
  options.bind_address = absl::GetFlag(FLAGS_bind_address);
  options.interface = absl::GetFlag(FLAGS_interface);
  options.data_dir = absl::GetFlag(FLAGS_data_dir);
  options.holdout = absl::GetFlag(FLAGS_holdout);
  options.batch_samples = absl::GetFlag(FLAGS_batch_size);
  options.num_epochs = absl::GetFlag(FLAGS_epochs);
  options.log_every = absl::GetFlag(FLAGS_log_every);
  options.init_path = absl::GetFlag(FLAGS_init);
  options.save_path = absl::GetFlag(FLAGS_save);
  options.silent_limit = absl::GetFlag(FLAGS_silent_limit);
  options.notice_period = absl::GetFlag(FLAGS_notice_period);
  RETURN_IF_ERROR(AtLeast("servers", options.num_servers, 1));
  RETURN_IF_ERROR(AtLeast("trainers", options.num_trainers, 1));
  RETURN_IF_ERROR(AtLeast("epochs", options.num_epochs, 1));
  RETURN_IF_ERROR(AtLeast("batch_size", options.batch_samples, 1));
  RETURN_IF_ERROR(AtLeast("holdout", options.holdout, 0));
  RETURN_IF_ERROR(AtLeast("log_every", options.log_every, 0));
  RETURN_IF_ERROR(CheckDuration("silent_limit", options.silent_limit,
                                rpc::LivenessOptions().heartbeat_interval));
  RETURN_IF_ERROR(CheckDuration("notice_period", options.notice_period,
                                absl::ZeroDuration()));
  RETURN_IF_ERROR(CheckPlace(options));
  options.credentials = ReadCredentials(IdentityOf(options).worker);

  const std::string optimizer = absl::GetFlag(FLAGS_optimizer);
  auto rule = optim::ParseRuleSpec(optimizer);
  if (rule.ok()) {
    options.rule = *rule;
    const auto made = optim::MakeUpdateRule(options.rule);
    if (made.ok()) {
      options.learning_rate = (*made)->learning_rate();
    } else {
      rule = made.status();
    }
  }
  if (!rule.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--optimizer=", optimizer, ": ", rule.status().message()));
  }
  options.seed = absl::GetFlag(FLAGS_deterministic) ? absl::GetFlag(FLAGS_seed)
                                                    : std::random_device()();
  return options;
}

}  // namespace hawser::examples::mnist_ps

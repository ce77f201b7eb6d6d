#ifndef HAWSER_EXAMPLES_MNIST_PS_OPTIONS_H_
#define HAWSER_EXAMPLES_MNIST_PS_OPTIONS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "launch/supervisor.h"
#include "net/auth/credentials_options.h"
#include "net/auth/identity.h"
#include "optim/rule_spec.h"
#include "rpc/membership/liveness_options.h"

namespace hawser::examples::mnist_ps {

// Role of this process in the job.
enum class Role {
  kLauncher,  // Starts the others as child processes and watches them.
  kServer,    // Holds parameters.
  kTrainer,   // Computes gradients; trainer 0 also tests and reports.
  kLocal,     // Trains in this process, without others.
};

struct Options {
  Role role = Role::kLauncher;
  int num_servers = 1;
  int num_trainers = 2;
  // Index of this process among those of its role, from 0.
  int index = 0;
  // URL of the job's store.
  std::string master;
  // If true, another process, such as the launcher, serves the store at
  // `master`; otherwise server 0 serves a tcp:// URL.
  bool external_store = false;

  // Address on which this process listens, "host:port", and the network
  // interface whose address replaces the host. Default: a free port of
  // loopback.
  std::string bind_address;
  std::string interface;

  // Directory of IDX files; empty: synthetic digits.
  std::string data_dir;
  // Number of samples kept for testing; 0: the data set's test files.
  int64_t holdout = 0;
  int64_t batch_samples = 64;
  int64_t num_epochs = 5;
  optim::RuleSpec rule;
  // The initial learning rate, taken from the update rule.
  double learning_rate = 0;
  uint64_t seed = 1;
  // Every nth step prints its loss with all digits; 0: none.
  int64_t log_every = 0;
  std::string init_path;
  std::string save_path;

  // Silence after which a process is declared lost, and time for the other
  // processes to report errors after one has ended.
  absl::Duration silent_limit = rpc::LivenessOptions().silent_limit;
  absl::Duration notice_period = launch::SupervisorOptions().notice_period;

  // Credentials of this process.
  net::CredentialsOptions credentials;

  int world_size() const { return num_servers + num_trainers; }
};

// Names of workers: "server0", "trainer1".
std::string ServerName(int index);
std::string TrainerName(int index);

// The identity that the certificate of this process must have: worker
// "server0", "trainer1", ..., or "launcher" of job "default".
net::Identity IdentityOf(const Options& options);

// Reads the command line's flags. kInvalidArgument names the wrong flag and its
// permitted values.
//
// The seed is --seed for a --deterministic run and for processes started with
// --role, which must agree on it; otherwise it is random.
absl::StatusOr<Options> ParseOptions(int argc, char** argv);

}  // namespace hawser::examples::mnist_ps

#endif  // HAWSER_EXAMPLES_MNIST_PS_OPTIONS_H_

#ifndef HAWSER_EXAMPLES_MNIST_PS_OPTIONS_H_
#define HAWSER_EXAMPLES_MNIST_PS_OPTIONS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "launch/supervisor.h"
#include "net/auth/credentials.h"
#include "net/auth/identity.h"
#include "optim/rule_spec.h"
#include "rpc/agent/agent_options.h"

namespace hawser::examples::mnist_ps {

// Role of this process in the job.
enum class Role {
  kLauncher,  // Starts the others as child processes and watches them.
  kServer,    // Holds parameters.
  kTrainer,   // Computes gradients; trainer 0 also tests and reports.
  kLocal,     // Trains alone, without any other process.
};

struct Options {
  Role role = Role::kLauncher;
  int num_servers = 1;
  int num_trainers = 2;
  // Which server or which trainer this process is, from 0.
  int index = 0;
  // URL of the store at which all processes meet.
  std::string master;
  // Somebody else (the launcher) serves the store at `master`, a tcp:// URL;
  // otherwise server 0 does.
  bool external_store = false;

  // Where this process serves, if not at a free port of loopback: "host:port",
  // and the network interface that the host is taken from.
  std::string bind_address;
  std::string interface;

  // Directory of IDX files; digits are drawn where it is empty.
  std::string data_dir;
  // Samples kept for testing; 0 for the data set's own test files.
  int64_t holdout = 0;
  int64_t batch_samples = 64;
  int64_t num_epochs = 5;
  optim::RuleSpec rule;
  // The rule's own, which training begins with.
  double learning_rate = 0;
  uint64_t seed = 1;
  // Every nth step prints its loss in full; 0 for none.
  int64_t log_every = 0;
  std::string init_path;
  std::string save_path;

  // For how long a process may stall before the others take it for dead,
  // and how long they have to say so once one has ended.
  absl::Duration silent_limit = rpc::LivenessOptions().silent_limit;
  absl::Duration notice_period = launch::SupervisorOptions().notice_period;

  // Of this process.
  net::CredentialsOptions credentials;

  int world_size() const { return num_servers + num_trainers; }
};

// The name of a worker: "server0", "trainer1".
std::string ServerName(int index);
std::string TrainerName(int index);

// What the certificate of this process must say: "server0", "trainer1", or
// "launcher", of job "default".
net::Identity IdentityOf(const Options& options);

// Reads the command line's flags. kInvalidArgument names the flag that is wrong
// and what it may be.
//
// The seed is --seed for a --deterministic run and for single processes of a
// job, which have to agree on one; otherwise a random one.
absl::StatusOr<Options> ParseOptions(int argc, char** argv);

}  // namespace hawser::examples::mnist_ps

#endif  // HAWSER_EXAMPLES_MNIST_PS_OPTIONS_H_

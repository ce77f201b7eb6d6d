// Flags of programs that train a model on servers.

#ifndef HAWSER_LAUNCH_TRAINING_TRAINING_FLAGS_H_
#define HAWSER_LAUNCH_TRAINING_TRAINING_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/tabular/sample_batches.h"
#include "launch/job/job_options.h"
#include "optim/rule_spec.h"
#include "ps/storage/consistency.h"

namespace hawser::launch {

// Names of the roles of a training job.
inline constexpr char kServerRole[] = "server";
inline constexpr char kTrainerRole[] = "trainer";

// The file in which the flags are defined, for Usage.
extern const char kTrainingFlagsFile[];

// A plain value.
struct TrainingOptions {
  int num_servers = 1;
  int num_trainers = 2;
  // Trains in one process, which holds the tables as well.
  bool local = false;
  // Of all tables.
  ps::Consistency consistency = {};
  int64_t num_epochs = 3;
  int64_t batch_samples = 256;
  int64_t shuffle_samples = 1;
  // Each `test_every`-th sample is for testing, unless there is test data.
  int64_t test_every = 10;
  uint64_t seed = 1;
  // Of the training data, if known: otherwise each process reads the data once
  // to find out and to check them.
  std::optional<data::SampleSummary> samples = std::nullopt;
  // Directory of a snapshot after each epoch; empty: none. `resume` starts from
  // the last one.
  std::string snapshot_directory = {};
  bool resume = false;

  // Servers and trainers; none if the training is local.
  std::vector<JobRole> roles() const;
};

// Returns the values of the flags. Call it after the command line was parsed.
// kInvalidArgument names the wrong flag and its permitted values.
absl::StatusOr<TrainingOptions> ReadTrainingFlags();

// The flags by which the launcher tells `samples` to the processes of the job.
std::vector<std::string> SampleFlags(const data::SampleSummary& samples);

// Returns the update rule that `text`, the value of `flag`, describes.
// kInvalidArgument names the flag.
absl::StatusOr<optim::RuleSpec> ParseRuleFlag(const char* flag,
                                              const std::string& text);

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_TRAINING_TRAINING_FLAGS_H_

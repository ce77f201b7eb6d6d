#include "launch/training/training_flags.h"

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "async/status_macros.h"
#include "launch/job/job_flags.h"
#include "optim/make_update_rule.h"

ABSL_FLAG(int, servers, 1, "Number of processes that hold the tables.");
ABSL_FLAG(int, trainers, 2, "Number of processes that compute gradients.");
ABSL_FLAG(bool, local, false,
          "Train the same model in this process, without servers.");
ABSL_FLAG(std::string, consistency, "async",
          "Updates of other trainers that a step sees. async: those that have "
          "arrived. bounded:N: all but those of their last N steps. sync: all "
          "of the steps before, and no others.");
ABSL_FLAG(int64_t, epochs, 3, "Passes over the training samples.");
ABSL_FLAG(int64_t, batch_size, 256, "Samples per step and trainer.");
ABSL_FLAG(int64_t, shuffle, 65536,
          "Number of samples that each trainer keeps in memory, to visit them "
          "in a random order. 1 keeps the order of the files.");
ABSL_FLAG(int64_t, test_every, 10,
          "Keep each Nth sample for testing, if there is no file for it.");
ABSL_FLAG(
    int64_t, num_samples, 0,
    "Number of samples of the data, if it is known: the process then does "
    "not read all of them before the training. The launcher sets it.");
ABSL_FLAG(double, mean_label, 0, "Their mean label, with --num_samples.");
ABSL_FLAG(uint64_t, seed, 1,
          "Seed of the initial values, the order of the samples and generated "
          "samples.");
ABSL_FLAG(std::string, snapshots, "",
          "Directory in which the servers save a snapshot after each epoch; "
          "all processes must see it.");
ABSL_FLAG(bool, resume, false,
          "Go on from the last snapshot in --snapshots, with any number of "
          "servers and trainers.");

namespace hawser::launch {
namespace {

constexpr int64_t kMostBound = 1'000'000;

absl::StatusOr<ps::Consistency> ParseConsistency(const std::string& text) {
  if (text == "async") return ps::Consistency::Asynchronous();
  if (text == "sync") return ps::Consistency::Synchronous();
  int64_t bound = 0;
  if (absl::StartsWith(text, "bounded:") &&
      absl::SimpleAtoi(text.substr(sizeof("bounded:") - 1), &bound) &&
      bound >= 0 && bound <= kMostBound) {
    return ps::Consistency::BoundedStaleness(bound);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--consistency=", text,
      ": must be async, sync, or bounded:N with N from 0 to ", kMostBound));
}

}  // namespace

const char kTrainingFlagsFile[] = "launch/training/training_flags.cc";

std::vector<JobRole> TrainingOptions::roles() const {
  if (local) return {};
  return {{kServerRole, num_servers}, {kTrainerRole, num_trainers}};
}

absl::StatusOr<TrainingOptions> ReadTrainingFlags() {
  TrainingOptions options;
  options.num_servers = absl::GetFlag(FLAGS_servers);
  options.num_trainers = absl::GetFlag(FLAGS_trainers);
  options.local = absl::GetFlag(FLAGS_local);
  options.num_epochs = absl::GetFlag(FLAGS_epochs);
  options.batch_samples = absl::GetFlag(FLAGS_batch_size);
  options.shuffle_samples = absl::GetFlag(FLAGS_shuffle);
  options.test_every = absl::GetFlag(FLAGS_test_every);
  options.seed = absl::GetFlag(FLAGS_seed);
  const int64_t num_samples = absl::GetFlag(FLAGS_num_samples);
  if (num_samples > 0) {
    options.samples = {.count = num_samples,
                       .mean_label = absl::GetFlag(FLAGS_mean_label)};
  }
  options.snapshot_directory = absl::GetFlag(FLAGS_snapshots);
  options.resume = absl::GetFlag(FLAGS_resume);
  ASSIGN_OR_RETURN(options.consistency,
                   ParseConsistency(absl::GetFlag(FLAGS_consistency)));
  RETURN_IF_ERROR(CheckAtLeast("servers", options.num_servers, 1));
  RETURN_IF_ERROR(CheckAtLeast("trainers", options.num_trainers, 1));
  RETURN_IF_ERROR(CheckAtLeast("epochs", options.num_epochs, 1));
  RETURN_IF_ERROR(CheckAtLeast("batch_size", options.batch_samples, 1));
  RETURN_IF_ERROR(CheckAtLeast("shuffle", options.shuffle_samples, 1));
  RETURN_IF_ERROR(CheckAtLeast("num_samples", num_samples, 0));
  RETURN_IF_ERROR(CheckAtLeast("test_every", options.test_every, 2));
  if (options.resume && options.snapshot_directory.empty()) {
    return absl::InvalidArgumentError(
        "--resume needs --snapshots, the directory to go on from");
  }
  return options;
}

std::vector<std::string> SampleFlags(const data::SampleSummary& samples) {
  return {absl::StrCat("--num_samples=", samples.count),
          absl::StrFormat("--mean_label=%.17g", samples.mean_label)};
}

absl::StatusOr<optim::RuleSpec> ParseRuleFlag(const char* flag,
                                              const std::string& text) {
  absl::StatusOr<optim::RuleSpec> rule = optim::ParseRuleSpec(text);
  const absl::Status made =
      rule.ok() ? optim::MakeUpdateRule(*rule).status() : rule.status();
  if (made.ok()) return rule;
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, "=", text, ": ", made.message()));
}

}  // namespace hawser::launch

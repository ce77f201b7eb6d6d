#include "launch/training/trainer_process.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/clock.h"
#include "async/status_macros.h"
#include "nlohmann/json.hpp"
#include "ps/training/checkpoint.h"
#include "ps/training/sparse_trainer.h"
#include "telemetry/progress_line.h"

namespace hawser::launch {
namespace {

class TrainerProcess {
 public:
  TrainerProcess(const SparseTask& task, const TrainingOptions& options,
                 const LoadedTask& loaded, JobMember& member)
      : task_(task), options_(options), loaded_(loaded), member_(member) {}

  // Creates or restores the tables.
  absl::Status Start(const std::vector<std::string>& servers);
  absl::Status Train(telemetry::ProgressLine& line);
  // For trainer 0: tests the model and prints the result.
  absl::Status Report(double samples_per_second);

 private:
  bool leads() const { return member_.options().index == 0; }
  int num_trainers() const { return member_.options().count(kTrainerRole); }
  absl::Status TrainEpoch(telemetry::ProgressLine& line);
  // Saves a snapshot while no trainer changes the tables.
  absl::Status Save();

  const SparseTask& task_;
  const TrainingOptions& options_;
  const LoadedTask& loaded_;
  JobMember& member_;
  std::unique_ptr<ps::SparseTrainer> trainer_;
  // The epochs so far.
  ps::Checkpoint position_;
  telemetry::Progress progress_;
};

absl::Status TrainerProcess::Start(const std::vector<std::string>& servers) {
  ASSIGN_OR_RETURN(position_, StartOf(options_));
  const ps::SparseTrainerOptions trainer = {.servers = servers,
                                            .consistency = options_.consistency,
                                            .num_trainers = num_trainers()};
  const bool restores = options_.resume && leads();
  if (restores) {
    ASSIGN_OR_RETURN(
        trainer_, ps::SparseTrainer::Restore(member_.agent(), loaded_.model(),
                                             trainer, position_.snapshot));
  }
  RETURN_IF_ERROR(member_.Meet("start"));
  if (restores) return absl::OkStatus();
  ASSIGN_OR_RETURN(trainer_, ps::SparseTrainer::Create(
                                 member_.agent(), loaded_.model(), trainer));
  return absl::OkStatus();
}

absl::Status TrainerProcess::Train(telemetry::ProgressLine& line) {
  const int64_t per_epoch = loaded_.samples_per_epoch(num_trainers());
  const int64_t steps =
      (per_epoch / num_trainers() + options_.batch_samples - 1) /
      options_.batch_samples;
  progress_ = {.num_epochs = options_.num_epochs,
               .step = position_.epochs * steps,
               .num_steps = options_.num_epochs * steps};
  while (position_.epochs < options_.num_epochs) {
    RETURN_IF_ERROR(TrainEpoch(line));
    ++position_.epochs;
    position_.samples += per_epoch;
    if (options_.snapshot_directory.empty()) continue;
    RETURN_IF_ERROR(Save());
  }
  return trainer_->Leave();
}

absl::Status TrainerProcess::TrainEpoch(telemetry::ProgressLine& line) {
  progress_.epoch = position_.epochs + 1;
  ASSIGN_OR_RETURN(
      data::SampleBatches batches,
      loaded_.TrainingBatches(position_.epochs, member_.options().index,
                              num_trainers()));
  RETURN_IF_ERROR(trainer_->Train(
      std::move(batches), [&](int64_t samples, double loss) -> absl::Status {
        ++progress_.step;
        progress_.loss = loss;
        progress_.samples = member_.AddSamples(samples);
        if (leads()) line.Update(progress_);
        return member_.Check();
      }));
  return member_.Meet(absl::StrCat("epoch-", progress_.epoch));
}

absl::Status TrainerProcess::Save() {
  const std::string old = std::exchange(
      position_.snapshot, absl::StrCat("epoch-", position_.epochs));
  if (leads()) {
    const std::string& directory = options_.snapshot_directory;
    RETURN_IF_ERROR(trainer_->Save(position_.snapshot));
    RETURN_IF_ERROR(ps::WriteCheckpoint(directory, position_));
    if (!old.empty()) {
      std::error_code ignored;
      std::filesystem::remove_all(absl::StrCat(directory, "/", old), ignored);
    }
  }
  return member_.Meet(position_.snapshot + "-saved");
}

absl::Status TrainerProcess::Report(double samples_per_second) {
  ASSIGN_OR_RETURN(data::SampleBatches batches, loaded_.TestBatches());
  ASSIGN_OR_RETURN(const ps::Predictions result,
                   trainer_->Predict(std::move(batches)));
  const auto measure =
      [&](const std::vector<float>& predictions) -> absl::StatusOr<double> {
    ASSIGN_OR_RETURN(const double value,
                     task_.measure(predictions, result.labels));
    return std::round(value * 1e6) / 1e6;
  };
  nlohmann::ordered_json json;
  json["example"] = task_.name;
  ASSIGN_OR_RETURN(json["test_" + task_.measure_name],
                   measure(result.predictions));
  if (!result.ideal.empty()) {
    ASSIGN_OR_RETURN(json["best_" + task_.measure_name], measure(result.ideal));
  }
  json["epochs"] = position_.epochs;
  json["samples"] = position_.samples;
  json["samples_per_s"] = std::llround(samples_per_second);
  std::printf("%s\n", json.dump().c_str());
  std::fflush(stdout);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ps::Checkpoint> StartOf(const TrainingOptions& options) {
  const std::string& directory = options.snapshot_directory;
  if (directory.empty()) return ps::Checkpoint();
  absl::StatusOr<ps::Checkpoint> checkpoint = ps::ReadCheckpoint(directory);
  if (!options.resume) {
    if (absl::IsNotFound(checkpoint.status())) return ps::Checkpoint();
    RETURN_IF_ERROR(checkpoint);
    return absl::FailedPreconditionError(absl::StrCat(
        "--snapshots=", directory, " has a checkpoint after ",
        checkpoint->epochs,
        " epochs: go on from it with --resume, or use another directory"));
  }
  if (checkpoint.ok() && checkpoint->epochs >= options.num_epochs) {
    return absl::FailedPreconditionError(
        absl::StrCat("--epochs=", options.num_epochs, ": the checkpoint in ",
                     directory, " has ", checkpoint->epochs, " already"));
  }
  return checkpoint;
}

absl::Status RunTrainerProcess(const SparseTask& task,
                               const TrainingOptions& options,
                               const LoadedTask& loaded,
                               const std::vector<std::string>& servers,
                               JobMember& member, StopSignals& stop) {
  // A lost server ends the job, and the look-ups with it.
  const JobMember::CallScope scope(member);
  TrainerProcess process(task, options, loaded, member);
  RETURN_IF_ERROR(process.Start(servers));
  async::RealClock clock;
  telemetry::ProgressLine line(stderr, &clock,
                               telemetry::ProgressLine::OptionsFor(stderr));
  stop.SetLine(&line);
  const absl::Cleanup unset = [&stop] { stop.SetLine(nullptr); };
  RETURN_IF_ERROR(process.Train(line));
  ASSIGN_OR_RETURN(const int64_t samples, member.FinishSamples());
  line.Finish();
  if (member.options().index != 0) return member.WaitForEnd();
  RETURN_IF_ERROR(process.Report(line.SamplesPerSecond(samples)));
  return member.EndJob();
}

}  // namespace hawser::launch

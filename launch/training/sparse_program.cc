#include "launch/training/sparse_program.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "launch/job/job_member.h"
#include "launch/job/job_options.h"
#include "launch/job/job_program.h"
#include "launch/job/stop_signals.h"
#include "launch/training/trainer_process.h"
#include "launch/training/training_flags.h"
#include "ps/table_service.h"
#include "rpc/agent/service.h"

namespace hawser::launch {
namespace {

absl::StatusOr<std::unique_ptr<JobMember>> Join(
    const JobOptions& job, const TrainingOptions& options) {
  std::vector<std::unique_ptr<rpc::Service>> services;
  services.push_back(std::make_unique<ps::TableService>(ps::TableServiceOptions{
      .snapshot_directory = options.snapshot_directory}));
  return JobMember::Join(job, std::move(services));
}

absl::Status RunServer(const JobOptions& job, const TrainingOptions& options) {
  ASSIGN_OR_RETURN(const auto member, Join(job, options));
  return member->Leave(member->WaitForEnd());
}

absl::Status RunTrainer(const SparseTask& task, const JobOptions& job,
                        const TrainingOptions& options, StopSignals& stop) {
  ASSIGN_OR_RETURN(const LoadedTask loaded, LoadedTask::Load(task, options));
  ASSIGN_OR_RETURN(const auto member, Join(job, options));
  const std::vector<std::string> servers =
      job.workers(options.local ? kTrainerRole : kServerRole);
  return member->Leave(
      RunTrainerProcess(task, options, loaded, servers, *member, stop));
}

// The job of one process that holds the tables as well.
JobOptions LocalJob(JobOptions job) {
  job.roles = {{kTrainerRole, 1}};
  job.role = kTrainerRole;
  job.master = "tcp://127.0.0.1:0";
  return job;
}

std::vector<std::pair<std::string, std::string>> Results(
    const std::string& measure) {
  return {{absl::StrCat("test_", measure), "Of the test samples."},
          {absl::StrCat("best_", measure),
           "Of the model that generated the samples, if it is known: the best "
           "that a model can reach."},
          {"epochs, samples",
           "Training so far, by all trainers, also before --resume."},
          {"samples_per_s",
           "Training samples of all trainers per second, from the first step "
           "to the end of the last trainer. The progress line shows the same "
           "number so far."}};
}

}  // namespace

int RunSparseProgram(const SparseProgram& program, int argc, char** argv) {
  const SparseTask& task = program.task;
  TrainingOptions options;
  JobProgram job = {
      .name = task.name,
      .usage = program.usage,
      .flags_file = program.flags_file,
      .library_flags_files = {kTrainingFlagsFile},
      .read_flags = [&options]() -> absl::StatusOr<std::vector<JobRole>> {
        ASSIGN_OR_RETURN(options, ReadTrainingFlags());
        return options.roles();
      },
      .check = [&task, &options]() -> absl::Status {
        RETURN_IF_ERROR(StartOf(options));
        ASSIGN_OR_RETURN(const LoadedTask loaded,
                         LoadedTask::Load(task, options));
        options.samples = loaded.samples();
        return absl::OkStatus();
      },
      .child_flags = [&options] { return SampleFlags(*options.samples); },
      .run =
          [&task, &options](const JobOptions& own, StopSignals& stop) {
            if (own.role == kServerRole) return RunServer(own, options);
            return RunTrainer(task, options.local ? LocalJob(own) : own,
                              options, stop);
          }};
  job.usage.results = Results(task.measure_name);
  return RunJobProgram(job, argc, argv);
}

}  // namespace hawser::launch

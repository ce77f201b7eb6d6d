// The work of one trainer of a job.

#ifndef HAWSER_LAUNCH_TRAINING_TRAINER_PROCESS_H_
#define HAWSER_LAUNCH_TRAINING_TRAINER_PROCESS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launch/job/job_member.h"
#include "launch/job/stop_signals.h"
#include "launch/training/sparse_task.h"
#include "launch/training/training_flags.h"
#include "ps/training/checkpoint.h"

namespace hawser::launch {

// Trains on the part of the samples that belongs to this trainer. Trainers meet
// after each epoch. Trainer 0 also restores and saves snapshots, shows the
// progress, tests the model, prints the result and ends the job.
//
//   servers  Names of the workers that hold the tables.
absl::Status RunTrainerProcess(const SparseTask& task,
                               const TrainingOptions& options,
                               const LoadedTask& loaded,
                               const std::vector<std::string>& servers,
                               JobMember& member, StopSignals& stop);

// Returns the position from which --resume goes on, or the begin of the
// training without it.
//
//   kNotFound            --resume, but there is no checkpoint.
//   kFailedPrecondition  there is one, but --resume is missing; or it has all
//                        epochs already.
absl::StatusOr<ps::Checkpoint> StartOf(const TrainingOptions& options);

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_TRAINING_TRAINER_PROCESS_H_

// The main function of a program that trains a sparse model on servers.

#ifndef HAWSER_LAUNCH_TRAINING_SPARSE_PROGRAM_H_
#define HAWSER_LAUNCH_TRAINING_SPARSE_PROGRAM_H_

#include <string>

#include "launch/job/usage.h"
#include "launch/training/sparse_task.h"

namespace hawser::launch {

// A program that trains a model on a job of servers and trainers, or with
// --local in one process:
//
//   int main(int argc, char** argv) {
//     return launch::RunSparseProgram(
//         {.usage = {.summary = "Trains a model of clicks."},
//          .flags_file = __FILE__,
//          .task = {.name = "ctr", ...}},
//         argc, argv);
//   }
//
// It shows its progress, saves and resumes snapshots, and prints the result as
// one line of JSON:
//
//   {"example":"ctr","test_auc":0.8538,"best_auc":0.864,"epochs":3,
//    "samples":540000,"samples_per_s":181234}
//
// "best_auc" is that of the model which generated the samples, if it is known
// (data::Samples::ideal). "samples" are those of all trainers and epochs, also
// before a resumed snapshot.
struct SparseProgram {
  // The meanings of the results need not be given.
  UsageText usage = {};
  // The source file with the program's own flags, in addition to those of
  // launch/training/training_flags.h and launch/job/job_flags.h.
  std::string flags_file = {};
  SparseTask task = {};
};

// Returns the exit code, as RunJobProgram.
int RunSparseProgram(const SparseProgram& program, int argc, char** argv);

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_TRAINING_SPARSE_PROGRAM_H_

// Position of a training, kept beside the snapshots of its tables.

#ifndef HAWSER_PS_TRAINING_CHECKPOINT_H_
#define HAWSER_PS_TRAINING_CHECKPOINT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hawser::ps {

struct Checkpoint {
  // Name of the snapshot in the snapshot directories of the servers.
  std::string snapshot = {};
  // Passes over the samples that it contains.
  int64_t epochs = 0;
  // Samples of these, by all trainers.
  int64_t samples = 0;

  friend bool operator==(const Checkpoint&, const Checkpoint&) = default;
};

// Writes `DIRECTORY/checkpoint.json` atomically, once the snapshot is complete:
// it replaces that of an earlier snapshot, which is then no longer needed.
// Errors of fs::AtomicFile.
absl::Status WriteCheckpoint(const std::string& directory,
                             const Checkpoint& checkpoint);

// Reads the file of WriteCheckpoint.
//
//   kNotFound  there is no such file.
//   kDataLoss  the file is damaged.
absl::StatusOr<Checkpoint> ReadCheckpoint(const std::string& directory);

}  // namespace hawser::ps

#endif  // HAWSER_PS_TRAINING_CHECKPOINT_H_

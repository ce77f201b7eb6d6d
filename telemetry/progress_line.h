#ifndef HAWSER_TELEMETRY_PROGRESS_LINE_H_
#define HAWSER_TELEMETRY_PROGRESS_LINE_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/mutex.h"

namespace hawser::telemetry {

// Progress of a training run.
struct Progress {
  int64_t epoch = 0;  // From 1.
  int64_t num_epochs = 0;
  int64_t step = 0;  // Over all epochs, from 1.
  int64_t num_steps = 0;
  double loss = 0;
  int64_t samples = 0;  // Seen so far, by all trainers.
};

struct ProgressLineOptions {
  // True redraws one line in place, for terminals; false writes a new line
  // every `plain_interval`.
  bool live = false;
  // Returns the width of the terminal in columns, 0 if it is unknown. Called
  // before each drawing of a live line, which is kept shorter. Null: unknown.
  std::function<int()> columns = nullptr;
  absl::Duration live_interval = absl::Milliseconds(100);
  absl::Duration plain_interval = absl::Seconds(2);
};

// Prints epoch, step, loss, samples per second and remaining time of a run.
//
//   epoch 2/5  step 180/470  loss 0.3127  48210 samples/s  left 0:06
//
// On a narrow terminal the speed, the epoch, the remaining time and the loss
// are left out, in this order, until the line fits. Plain text without colours;
// the only cursor movement is a carriage return when live. Thread-safe.
class ProgressLine {
 public:
  // `out` and `clock` must outlive this object.
  ProgressLine(std::FILE* out, const async::Clock* clock,
               ProgressLineOptions options);

  // Ends the live line.
  ~ProgressLine() { Finish(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Returns options that are live if CanRedraw (telemetry/terminal.h) holds for
  // `out`.
  static ProgressLineOptions OptionsFor(std::FILE* out);

  // Prints `progress` if the interval has passed since the last output, and
  // always for the last step of the run.
  void Update(const Progress& progress);

  // Ends the live line, so that other output starts on a new line. Later
  // updates print nothing.
  void Finish();

  // Samples per second since construction.
  double SamplesPerSecond(int64_t samples) const;

 private:
  // The line in at most `columns` columns, 0 for any number.
  std::string Format(const Progress& progress, size_t columns) const;

  std::FILE* const out_;
  const async::Clock* const clock_;
  const ProgressLineOptions options_;
  const async::MonotonicTime start_;

  async::Mutex mutex_;
  async::MonotonicTime next_showing_ ABSL_GUARDED_BY(mutex_);
  size_t drawn_width_ ABSL_GUARDED_BY(mutex_) = 0;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hawser::telemetry

#endif  // HAWSER_TELEMETRY_PROGRESS_LINE_H_

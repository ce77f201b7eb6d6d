#ifndef HAWSER_TELEMETRY_PROGRESS_LINE_H_
#define HAWSER_TELEMETRY_PROGRESS_LINE_H_

#include <cstdint>
#include <cstdio>
#include <string>

#include "absl/time/time.h"
#include "async/clock.h"

namespace hawser::telemetry {

// Progress of a training run.
struct Progress {
  int64_t epoch = 0;  // From 1.
  int64_t num_epochs = 0;
  int64_t step = 0;  // Over all epochs, from 1.
  int64_t num_steps = 0;
  double loss = 0;
  int64_t samples = 0;  // Seen so far.
};

struct ProgressLineOptions {
  // True redraws one line in place, for terminals; false writes a new line
  // every `plain_interval`.
  bool live = false;
  absl::Duration live_interval = absl::Milliseconds(100);
  absl::Duration plain_interval = absl::Seconds(2);
};

// Prints epoch, step, loss, samples per second and remaining time of a run.
//
//   epoch 2/5  step 180/470  loss 0.3127  48210 samples/s  left 0:06
//
// Plain text without colours; the only cursor movement is a carriage return
// when live. Not thread-safe.
class ProgressLine {
 public:
  // `out` and `clock` must outlive this object.
  ProgressLine(std::FILE* out, const async::Clock* clock,
               ProgressLineOptions options);

  // Returns options that are live if `out` is a terminal that can redraw a
  // line.
  static ProgressLineOptions OptionsFor(std::FILE* out);

  // Prints `progress` if the interval has passed since the last output, and
  // always for the last step of the run.
  void Update(const Progress& progress);

  // Ends the live line, so that other output starts on a new line.
  void Finish();

  // Samples per second since construction.
  double SamplesPerSecond(int64_t samples) const;

 private:
  std::string Format(const Progress& progress) const;

  std::FILE* const out_;
  const async::Clock* const clock_;
  const ProgressLineOptions options_;
  const async::MonotonicTime start_;
  async::MonotonicTime next_showing_;
  size_t drawn_width_ = 0;
};

}  // namespace hawser::telemetry

#endif  // HAWSER_TELEMETRY_PROGRESS_LINE_H_

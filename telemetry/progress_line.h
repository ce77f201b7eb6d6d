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
  // One line, redrawn in place, where `out` is a terminal; otherwise a line of
  // its own every `plain_interval`.
  bool live = false;
  absl::Duration live_interval = absl::Milliseconds(100);
  absl::Duration plain_interval = absl::Seconds(2);
};

// Shows epoch, step, loss, samples per second and the time left of a run.
//
//   epoch 2/5  step 180/470  loss 0.3127  48210 samples/s  left 0:06
//
// Plain text without colour or cursor movement but for a carriage return when
// live. Not thread-safe.
class ProgressLine {
 public:
  // `out` and `clock` must outlive this object.
  ProgressLine(std::FILE* out, const async::Clock* clock,
               ProgressLineOptions options);

  // Live where `out` is a terminal that can redraw a line.
  static ProgressLineOptions OptionsFor(std::FILE* out);

  // Shows `progress` if the interval since the last showing has passed, and
  // always for the run's last step.
  void Update(const Progress& progress);

  // Leaves the live line, so that other output starts on a line of its own.
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

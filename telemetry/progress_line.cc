#include "telemetry/progress_line.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace hawser::telemetry {
namespace {

double SecondsBetween(async::MonotonicTime from, async::MonotonicTime to) {
  return std::chrono::duration<double>(to - from).count();
}

// 75 as "1:15", 3675 as "1:01:15".
std::string MinutesAndSeconds(double seconds) {
  const auto whole = static_cast<int64_t>(std::lround(std::max(0.0, seconds)));
  if (whole >= 3600) {
    return absl::StrFormat("%d:%02d:%02d", whole / 3600, whole / 60 % 60,
                           whole % 60);
  }
  return absl::StrFormat("%d:%02d", whole / 60, whole % 60);
}

}  // namespace

ProgressLine::ProgressLine(std::FILE* out, const async::Clock* clock,
                           ProgressLineOptions options)
    : out_(out),
      clock_(clock),
      options_(options),
      start_(clock->Now()),
      next_showing_(start_) {}

ProgressLineOptions ProgressLine::OptionsFor(std::FILE* out) {
  ProgressLineOptions options;
  const char* term = std::getenv("TERM");
  options.live = isatty(fileno(out)) == 1 && term != nullptr &&
                 std::strcmp(term, "dumb") != 0;
  return options;
}

double ProgressLine::SamplesPerSecond(int64_t samples) const {
  const double elapsed = SecondsBetween(start_, clock_->Now());
  return elapsed > 0 ? static_cast<double>(samples) / elapsed : 0;
}

std::string ProgressLine::Format(const Progress& progress) const {
  const double elapsed = SecondsBetween(start_, clock_->Now());
  const auto steps_left =
      static_cast<double>(progress.num_steps - progress.step);
  const double left =
      progress.step > 0
          ? elapsed / static_cast<double>(progress.step) * steps_left
          : 0;
  return absl::StrFormat(
      "epoch %d/%d  step %d/%d  loss %.4f  %.0f samples/s  left %s",
      progress.epoch, progress.num_epochs, progress.step, progress.num_steps,
      progress.loss, SamplesPerSecond(progress.samples),
      MinutesAndSeconds(left));
}

void ProgressLine::Update(const Progress& progress) {
  const async::MonotonicTime now = clock_->Now();
  const bool last = progress.step == progress.num_steps;
  if (now < next_showing_ && !last) return;
  next_showing_ =
      now + absl::ToChronoNanoseconds(options_.live ? options_.live_interval
                                                    : options_.plain_interval);
  std::string line = Format(progress);
  if (!options_.live) {
    absl::FPrintF(out_, "%s\n", line);
    return;
  }
  // Pad with spaces to overwrite a longer previous line.
  const size_t width = line.size();
  if (width < drawn_width_) line.append(drawn_width_ - width, ' ');
  drawn_width_ = width;
  absl::FPrintF(out_, "\r%s", line);
  std::fflush(out_);
}

void ProgressLine::Finish() {
  if (options_.live && drawn_width_ > 0) {
    absl::FPrintF(out_, "\n");
    drawn_width_ = 0;
  }
  std::fflush(out_);
}

}  // namespace hawser::telemetry

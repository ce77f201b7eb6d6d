#include "telemetry/progress_line.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "telemetry/terminal.h"

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
      options_(std::move(options)),
      start_(clock->Now()),
      next_showing_(start_) {}

ProgressLineOptions ProgressLine::OptionsFor(std::FILE* out) {
  ProgressLineOptions options;
  const int fd = fileno(out);
  options.live = CanRedraw(fd);
  options.columns = [fd] { return TerminalColumns(fd); };
  return options;
}

double ProgressLine::SamplesPerSecond(int64_t samples) const {
  const double elapsed = SecondsBetween(start_, clock_->Now());
  return elapsed > 0 ? static_cast<double>(samples) / elapsed : 0;
}

std::string ProgressLine::Format(const Progress& progress,
                                 size_t columns) const {
  const double elapsed = SecondsBetween(start_, clock_->Now());
  const auto steps_left =
      static_cast<double>(progress.num_steps - progress.step);
  const double left =
      progress.step > 0
          ? elapsed / static_cast<double>(progress.step) * steps_left
          : 0;
  std::array<std::string, 5> fields = {
      absl::StrFormat("epoch %d/%d", progress.epoch, progress.num_epochs),
      absl::StrFormat("step %d/%d", progress.step, progress.num_steps),
      absl::StrFormat("loss %.4f", progress.loss),
      absl::StrFormat("%.0f samples/s", SamplesPerSecond(progress.samples)),
      absl::StrCat("left ", MinutesAndSeconds(left))};
  const auto join = [&fields] {
    std::string line;
    for (const std::string& field : fields) {
      if (field.empty()) continue;
      absl::StrAppend(&line, line.empty() ? "" : "  ", field);
    }
    return line;
  };
  std::string line = join();
  for (const size_t omitted : {3, 0, 4, 2}) {
    if (columns == 0 || line.size() <= columns) return line;
    fields[omitted].clear();
    line = join();
  }
  return columns == 0 ? line : line.substr(0, columns);
}

void ProgressLine::Update(const Progress& progress) {
  const async::MonotonicTime now = clock_->Now();
  const bool last = progress.step == progress.num_steps;
  const async::MutexLock lock(&mutex_);
  if (finished_ || (now < next_showing_ && !last)) return;
  next_showing_ =
      now + absl::ToChronoNanoseconds(options_.live ? options_.live_interval
                                                    : options_.plain_interval);
  if (!options_.live) {
    absl::FPrintF(out_, "%s\n", Format(progress, 0));
    return;
  }
  const int columns = options_.columns != nullptr ? options_.columns() : 0;
  // Characters in the last column would make some terminals scroll.
  const size_t limit = columns > 1 ? static_cast<size_t>(columns - 1) : 0;
  std::string line = Format(progress, limit);
  // Pad with spaces to overwrite a longer previous line.
  const size_t width = line.size();
  const size_t padded =
      limit > 0 ? std::min(limit, drawn_width_) : drawn_width_;
  if (width < padded) line.append(padded - width, ' ');
  drawn_width_ = width;
  absl::FPrintF(out_, "\r%s", line);
  std::fflush(out_);
}

void ProgressLine::Finish() {
  const async::MutexLock lock(&mutex_);
  finished_ = true;
  if (options_.live && drawn_width_ > 0) {
    absl::FPrintF(out_, "\n");
    drawn_width_ = 0;
  }
  std::fflush(out_);
}

}  // namespace hawser::telemetry

#include "launch/run/output_pump.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace hawser::launch {
namespace {

constexpr size_t kReadBytes = size_t{64} << 10;

}  // namespace

absl::StatusOr<std::unique_ptr<OutputPump>> OutputPump::Start(
    std::vector<OutputSource> sources, Console* console) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return absl::ErrnoToStatus(errno, "cannot carry the output of processes");
  }
  return std::unique_ptr<OutputPump>(new OutputPump(std::move(sources), console,
                                                    fs::UniqueFd(ends[0]),
                                                    fs::UniqueFd(ends[1])));
}

OutputPump::OutputPump(std::vector<OutputSource> sources, Console* console,
                       fs::UniqueFd stop_read, fs::UniqueFd stop_write)
    : console_(console),
      stop_read_(std::move(stop_read)),
      stop_write_(std::move(stop_write)) {
  for (OutputSource& source : sources) {
    const size_t process = source.process;
    if (process >= num_open_.size()) {
      num_open_.resize(process + 1);
      last_lines_.resize(process + 1);
    }
    ++num_open_[process];
    streams_.push_back({std::move(source), ""});
  }
  thread_ = std::thread([this] { Run(); });
}

OutputPump::~OutputPump() {
  stop_write_.Reset();
  thread_.join();
}

void OutputPump::Run() {
  while (true) {
    std::vector<pollfd> polled{{stop_read_.get(), POLLIN, 0}};
    std::vector<size_t> indices;
    for (size_t i = 0; i < streams_.size(); ++i) {
      if (!streams_[i].source.pipe.valid()) continue;
      polled.push_back({streams_[i].source.pipe.get(), POLLIN, 0});
      indices.push_back(i);
    }
    if (poll(polled.data(), polled.size(), -1) < 0) continue;
    for (size_t i = 0; i < indices.size(); ++i) {
      Stream& stream = streams_[indices[i]];
      if (polled[i + 1].revents == 0 || Read(stream)) continue;
      if (!stream.line.empty()) EndLine(stream);
      stream.source.pipe.Reset();
      async::MutexLock lock(&mutex_);
      --num_open_[stream.source.process];
      changed_.NotifyAll();
    }
    if (polled[0].revents != 0) return;
  }
}

bool OutputPump::Read(Stream& stream) {
  std::array<char, kReadBytes> bytes;
  const ssize_t got =
      read(stream.source.pipe.get(), bytes.data(), bytes.size());
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  if (got == 0) return false;
  Take(stream, std::string_view(bytes.data(), static_cast<size_t>(got)));
  return true;
}

void OutputPump::Take(Stream& stream, std::string_view bytes) {
  if (stream.source.file.valid()) WriteFile(stream, bytes);
  while (!bytes.empty()) {
    const size_t newline = bytes.find('\n');
    const size_t room = kMaxLineBytes - stream.line.size();
    const size_t taken = std::min({newline, bytes.size(), room});
    stream.line.append(bytes.substr(0, taken));
    if (taken == newline) {
      bytes.remove_prefix(taken + 1);
      EndLine(stream);
    } else {
      bytes.remove_prefix(taken);
      if (stream.line.size() == kMaxLineBytes) EndLine(stream);
    }
  }
}

void OutputPump::EndLine(Stream& stream) {
  const OutputSource& source = stream.source;
  if (source.to_console) {
    console_->PrintLine(source.stream, source.prefix,
                        static_cast<int>(source.process), stream.line);
  }
  {
    async::MutexLock lock(&mutex_);
    std::deque<std::string>& lines = last_lines_[source.process];
    lines.push_back(stream.line.substr(0, kMaxLastLineBytes));
    if (lines.size() > kNumLastLines) lines.pop_front();
  }
  stream.line.clear();
}

void OutputPump::WriteFile(Stream& stream, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        write(stream.source.file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      console_->Say(absl::StrCat("the log ", stream.source.path,
                                 " ends here: ", std::strerror(errno)));
      stream.source.file.Reset();
      return;
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

bool OutputPump::HasEnded(size_t process) const {
  return process >= num_open_.size() || num_open_[process] == 0;
}

std::string OutputPump::LastLines(size_t process, absl::Duration timeout) {
  const auto deadline =
      std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(timeout);
  async::MutexLock lock(&mutex_);
  while (!HasEnded(process) && changed_.WaitUntil(&mutex_, deadline)) {
  }
  std::string text;
  if (process >= last_lines_.size()) return text;
  for (const std::string& line : last_lines_[process]) {
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

void OutputPump::Finish(absl::Duration timeout) {
  const auto deadline =
      std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(timeout);
  async::MutexLock lock(&mutex_);
  for (size_t process = 0; process < num_open_.size(); ++process) {
    while (!HasEnded(process) && changed_.WaitUntil(&mutex_, deadline)) {
    }
  }
}

}  // namespace hawser::launch

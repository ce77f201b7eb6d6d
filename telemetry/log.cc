#include "telemetry/log.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace hawser::telemetry {
namespace {

struct Level {
  std::string_view name;
  char letter;
};
// By LogSeverity.
constexpr std::array<Level, 3> kLevels = {
    {{"info", 'I'}, {"warning", 'W'}, {"error", 'E'}}};

// Replaces control characters.
std::string OneLine(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      line.push_back(c);
    } else {
      absl::StrAppend(&line, "\\x", absl::Hex(byte, absl::kZeroPad2));
    }
  }
  return line;
}

std::string_view FileName(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

void WriteToStderr(const LogEntry& entry) {
  const std::string_view file = FileName(entry.file);
  const std::string line = absl::StrCat(
      absl::string_view(&kLevels[static_cast<size_t>(entry.severity)].letter,
                        1),
      absl::FormatTime("%m%d %H:%M:%E6S ", entry.time, absl::LocalTimeZone()),
      gettid(), " ", absl::string_view(file.data(), file.size()), ":",
      entry.line, "] hawser: ",
      absl::string_view(entry.message.data(), entry.message.size()), "\n");
  // One call, so that lines of several threads do not mix.
  std::fwrite(line.data(), 1, line.size(), stderr);
}

class Logger {
 public:
  Logger() {
    const char* const text = std::getenv("HAWSER_LOG_LEVEL");
    if (text == nullptr) return;
    for (size_t i = 0; i < kLevels.size(); ++i) {
      if (kLevels[i].name == text) {
        SetMinSeverity(static_cast<LogSeverity>(i));
        return;
      }
    }
    const std::string problem =
        absl::StrCat("the environment variable HAWSER_LOG_LEVEL is '",
                     OneLine(text), "'; it must be info, warning or error");
    Write({.severity = LogSeverity::kWarning,
           .time = absl::Now(),
           .file = __FILE__,
           .line = __LINE__,
           .message = problem});
  }

  void SetSink(std::shared_ptr<LogSink> sink) {
    const std::lock_guard lock(mutex_);
    std::swap(sink_, sink);
  }
  void SetMinSeverity(LogSeverity severity) { min_severity_ = severity; }
  LogSeverity min_severity() const { return min_severity_; }

  void Write(const LogEntry& entry) {
    std::shared_ptr<LogSink> sink;
    {
      const std::lock_guard lock(mutex_);
      sink = sink_;
    }
    if (sink != nullptr) {
      sink->Write(entry);
    } else {
      WriteToStderr(entry);
    }
  }

 private:
  std::atomic<LogSeverity> min_severity_{LogSeverity::kInfo};
  std::mutex mutex_;
  // Null: stderr.
  std::shared_ptr<LogSink> sink_;
};

// Never destroyed, since threads may log while the process exits.
Logger& GetLogger() {
  static Logger& logger = *new Logger();
  return logger;
}

}  // namespace

void SetLogSink(std::shared_ptr<LogSink> sink) {
  GetLogger().SetSink(std::move(sink));
}

void SetMinLogSeverity(LogSeverity severity) {
  GetLogger().SetMinSeverity(severity);
}

void Log(LogSeverity severity, std::string_view message, const char* file,
         int line) {
  Logger& logger = GetLogger();
  if (severity < logger.min_severity()) return;
  const std::string text = OneLine(message);
  logger.Write({.severity = severity,
                .time = absl::Now(),
                .file = file,
                .line = line,
                .message = text});
}

}  // namespace hawser::telemetry

// The log of the library: few lines, for those who operate a job.

#ifndef HAWSER_TELEMETRY_LOG_H_
#define HAWSER_TELEMETRY_LOG_H_

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/time/time.h"

namespace hawser::telemetry {

enum class LogSeverity : uint8_t {
  // Nothing is wrong: the operator may want to know what takes time.
  kInfo,
  // The job goes on, and the operator should look.
  kWarning,
  // Something that was asked for is not done.
  kError,
};

// Not valid after LogSink::Write returns.
struct LogEntry {
  LogSeverity severity = LogSeverity::kInfo;
  absl::Time time;
  // Of the source of the library.
  std::string_view file;
  int line = 0;
  // One line of printable text, without a newline: control characters, which
  // may come from a peer, are written as in "\x1b".
  std::string_view message;
};

// Receives the entries of a process, to pass them to the log of the program.
// Write may be called from several threads concurrently, and with locks of the
// library held: it must not call the library, nor wait for a thread that does.
class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual void Write(const LogEntry& entry) = 0;
};

// Sends later entries to `sink` instead of stderr. Null restores stderr, where
// a line looks like those of glog, Abseil and gRPC: severity, month and day,
// local time, thread, source line:
//
//   W1123 16:39:27.123456 4242 listener.cc:228] hawser: refused a connection...
//
// The old sink may still receive entries that began before. Thread-safe.
void SetLogSink(std::shared_ptr<LogSink> sink);

// Drops entries below `severity`. Initially the environment variable
// HAWSER_LOG_LEVEL decides: "info", "warning" or "error"; info if it is unset.
// Thread-safe.
void SetMinLogSeverity(LogSeverity severity);

// Writes one entry. `file` and `line` are those of the caller; clang 14 has no
// std::source_location. Thread-safe.
void Log(LogSeverity severity, std::string_view message,
         const char* file = __builtin_FILE(), int line = __builtin_LINE());

}  // namespace hawser::telemetry

#endif  // HAWSER_TELEMETRY_LOG_H_

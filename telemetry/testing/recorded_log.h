// The log of a test.

#ifndef HAWSER_TELEMETRY_TESTING_RECORDED_LOG_H_
#define HAWSER_TELEMETRY_TESTING_RECORDED_LOG_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "telemetry/log.h"

namespace hawser::telemetry {

// Keeps the entries that are logged during its lifetime, instead of those on
// stderr. One at a time in a process. Thread-safe.
class RecordedLog {
 public:
  struct Entry {
    LogSeverity severity = LogSeverity::kInfo;
    absl::Time time;
    std::string file;
    int line = 0;
    std::string message;
  };

  RecordedLog();
  ~RecordedLog();
  RecordedLog(const RecordedLog&) = delete;
  RecordedLog& operator=(const RecordedLog&) = delete;

  std::vector<Entry> entries() const;
  std::vector<std::string> messages() const;

 private:
  class Sink;
  const std::shared_ptr<Sink> sink_;
};

}  // namespace hawser::telemetry

#endif  // HAWSER_TELEMETRY_TESTING_RECORDED_LOG_H_

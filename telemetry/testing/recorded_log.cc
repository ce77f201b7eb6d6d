#include "telemetry/testing/recorded_log.h"

#include <mutex>

namespace hawser::telemetry {

class RecordedLog::Sink final : public LogSink {
 public:
  void Write(const LogEntry& entry) override {
    const std::lock_guard lock(mutex_);
    entries_.push_back({entry.severity, entry.time, std::string(entry.file),
                        entry.line, std::string(entry.message)});
  }
  std::vector<Entry> entries() const {
    const std::lock_guard lock(mutex_);
    return entries_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
};

RecordedLog::RecordedLog() : sink_(std::make_shared<Sink>()) {
  SetLogSink(sink_);
}

RecordedLog::~RecordedLog() { SetLogSink(nullptr); }

std::vector<RecordedLog::Entry> RecordedLog::entries() const {
  return sink_->entries();
}

std::vector<std::string> RecordedLog::messages() const {
  std::vector<std::string> messages;
  for (const Entry& entry : entries()) messages.push_back(entry.message);
  return messages;
}

}  // namespace hawser::telemetry

#include "net/grpc/library_log.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "async/mutex.h"
#include "telemetry/log.h"
#include "telemetry/log_rate_limiter.h"

namespace hawser::net {
namespace {

using ::hawser::telemetry::LogSeverity;

// Logs errors, limited by source line.
class ErrorLog {
 public:
  // `library` and `file` live as long as the process.
  void Log(LogSeverity severity, const char* library, const char* file,
           int line, std::string_view message) {
    uint64_t num_unlogged = 0;
    {
      async::MutexLock lock(&mutex_);
      Source& source = sources_[{file, line}];
      if (!source.limit.ShouldLog(std::chrono::steady_clock::now())) {
        ++source.num_unlogged;
        return;
      }
      num_unlogged = std::exchange(source.num_unlogged, 0);
    }
    std::string text = absl::StrCat(library, ": ");
    text.append(message);
    if (num_unlogged > 0) {
      absl::StrAppend(&text, " (", num_unlogged, " more not logged)");
    }
    telemetry::Log(severity, text, file, line);
  }

 private:
  struct Source {
    telemetry::LogRateLimiter limit;
    uint64_t num_unlogged = 0;
  };

  async::Mutex mutex_;
  // As many as the libraries have lines that log.
  absl::flat_hash_map<std::pair<std::string_view, int>, Source> sources_
      ABSL_GUARDED_BY(mutex_);
};

ErrorLog& Errors() {
  // Never destroyed: threads of gRPC may log until the process ends.
  static ErrorLog& errors = *new ErrorLog();
  return errors;
}

// The libraries return their errors too, so that the job goes on.
void LogOfGrpc(gpr_log_func_args* entry) {
  if (entry->severity == GPR_LOG_SEVERITY_ERROR) {
    Errors().Log(LogSeverity::kWarning, "gRPC", entry->file, entry->line,
                 entry->message);
  } else {
    telemetry::Log(LogSeverity::kInfo, absl::StrCat("gRPC: ", entry->message),
                   entry->file, entry->line);
  }
}

void LogOfProtobuf(google::protobuf::LogLevel level, const char* file, int line,
                   const std::string& message) {
  // After an entry of this level, protobuf ends the process.
  if (level == google::protobuf::LOGLEVEL_FATAL) {
    telemetry::Log(LogSeverity::kError, absl::StrCat("protobuf: ", message),
                   file, line);
  } else {
    Errors().Log(LogSeverity::kWarning, "protobuf", file, line, message);
  }
}

}  // namespace

void ForwardLibraryLogs() {
  gpr_set_log_function(&LogOfGrpc);
  // Not synchronized with threads that log by it, which read one pointer.
  google::protobuf::SetLogHandler(&LogOfProtobuf);
}

}  // namespace hawser::net

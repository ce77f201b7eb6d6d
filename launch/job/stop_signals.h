// Reaction of a process to SIGINT and SIGTERM.

#ifndef HAWSER_LAUNCH_JOB_STOP_SIGNALS_H_
#define HAWSER_LAUNCH_JOB_STOP_SIGNALS_H_

#include <atomic>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "async/mutex.h"
#include "telemetry/progress_line.h"

namespace hawser::launch {

// Ends the process when it receives SIGINT or SIGTERM, with exit code 128 + n
// as shells report it, after the progress line was ended. The other processes
// of the job notice the end by themselves. A worker that leaves its job instead
// uses TerminationSignals.
//
// Thread-safe.
class StopSignals {
 public:
  // Blocks both signals permanently in the calling thread and in the threads
  // that it starts later. Must be called from the main thread, before other
  // threads start. Unless `name` is empty, the end of the process is reported
  // on standard error under this name.
  explicit StopSignals(std::string name);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Sets the line to end. Null: none. The line must exist until another one is
  // set.
  void SetLine(telemetry::ProgressLine* line);

 private:
  void Wait();

  const std::string name_;
  async::Mutex mutex_;
  telemetry::ProgressLine* line_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_JOB_STOP_SIGNALS_H_

#ifndef HAWSER_LAUNCH_RUN_OUTPUT_PUMP_H_
#define HAWSER_LAUNCH_RUN_OUTPUT_PUMP_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/mutex.h"
#include "fs/unique_fd.h"
#include "launch/run/console.h"

namespace hawser::launch {

// A stream of a process: the pipe that it is read from and where its lines go.
struct OutputSource {
  // Index of the process, which also chooses the colour.
  size_t process = 0;
  OutputStream stream = OutputStream::kOutput;
  fs::UniqueFd pipe = {};
  // Before the lines on the console.
  std::string prefix = {};
  bool to_console = true;
  // Gets the bytes unchanged. Not valid: there is no file.
  fs::UniqueFd file = {};
  // Names the file in errors.
  std::string path = {};
};

// Carries the output of processes to the console and to files, in a thread of
// its own. A line goes to the console when it is complete, or at the end of the
// stream; a line above kMaxLineBytes is divided. Keeps the last lines of each
// process. Thread-safe.
class OutputPump {
 public:
  static constexpr size_t kMaxLineBytes = size_t{64} << 10;
  static constexpr size_t kNumLastLines = 20;
  // Longer lines are cut in last_lines().
  static constexpr size_t kMaxLastLineBytes = 500;

  // `console` must outlive the pump. kResourceExhausted if the process has no
  // free descriptor.
  static absl::StatusOr<std::unique_ptr<OutputPump>> Start(
      std::vector<OutputSource> sources, Console* console);
  // Stops without waiting for the ends of the streams.
  ~OutputPump();
  OutputPump(const OutputPump&) = delete;
  OutputPump& operator=(const OutputPump&) = delete;

  // The last lines of both streams of a process, in the order in which they
  // were read, each with a newline. Waits up to `timeout` for the ends of its
  // streams.
  std::string LastLines(size_t process, absl::Duration timeout);

  // Waits up to `timeout` for the ends of all streams.
  void Finish(absl::Duration timeout);

 private:
  // A source and its incomplete line.
  struct Stream {
    OutputSource source;
    std::string line;
  };

  OutputPump(std::vector<OutputSource> sources, Console* console,
             fs::UniqueFd stop_read, fs::UniqueFd stop_write);

  void Run();
  // Reads once; false at the end of the stream.
  bool Read(Stream& stream);
  void Take(Stream& stream, std::string_view bytes);
  void EndLine(Stream& stream);
  void WriteFile(Stream& stream, std::string_view bytes);
  bool HasEnded(size_t process) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Console* const console_;
  // The end of this pipe stops the thread.
  const fs::UniqueFd stop_read_;
  fs::UniqueFd stop_write_;
  // Of the thread only.
  std::vector<Stream> streams_;

  async::Mutex mutex_;
  async::CondVar changed_;
  // By process: its open streams and last lines.
  std::vector<int> num_open_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::deque<std::string>> last_lines_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;
};

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_RUN_OUTPUT_PUMP_H_

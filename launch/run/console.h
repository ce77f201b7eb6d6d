#ifndef HAWSER_LAUNCH_RUN_CONSOLE_H_
#define HAWSER_LAUNCH_RUN_CONSOLE_H_

#include <string>

#include "async/mutex.h"

namespace hawser::launch {

// A stream of a process, and of the launcher that repeats it.
enum class OutputStream { kOutput, kError };

struct ConsoleOptions {
  // Descriptors of the launcher's standard output and standard error.
  int output_fd = 1;
  int error_fd = 2;
  // Whether prefixes on each of them have colours.
  bool output_colours = false;
  bool error_colours = false;
};

// The output of a launcher: lines of its processes with a prefix, and its own
// messages. Each line is written whole. Thread-safe; blocks while a descriptor
// does.
class Console {
 public:
  explicit Console(ConsoleOptions options) : options_(options) {}
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  // Writes "[prefix] line". `index` chooses the colour.
  void PrintLine(OutputStream stream, const std::string& prefix, int index,
                 const std::string& line);

  // Writes "hawser: message" to standard error, followed by `lines`, indented,
  // each of which ends with a newline.
  void Say(const std::string& message, const std::string& lines = "");

 private:
  const ConsoleOptions options_;
  async::Mutex mutex_;
};

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_RUN_CONSOLE_H_

#ifndef HAWSER_LAUNCH_RUN_LOG_DIRECTORY_H_
#define HAWSER_LAUNCH_RUN_LOG_DIRECTORY_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "fs/unique_fd.h"

namespace hawser::launch {

// Log files of the processes of a node, where torchrun has them:
//
//   LOG_DIR/RUN_ID_XXXXXX/attempt_N/LOCAL_RANK/stdout.log and stderr.log
class LogDirectory {
 public:
  // Creates the directory of this run, with mode 0700. `log_dir` is created if
  // it does not exist; if it is empty, the directory lies among the system's
  // temporary files. Returns the system's errors, with the path.
  static absl::StatusOr<LogDirectory> Create(const std::string& log_dir,
                                             const std::string& run_id);

  struct File {
    fs::UniqueFd fd;
    std::string path;
  };
  // Opens a new file; `name` is "stdout" or "stderr".
  absl::StatusOr<File> Open(int attempt, int local_rank,
                            const std::string& name) const;

  const std::string& path() const { return path_; }

 private:
  explicit LogDirectory(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_RUN_LOG_DIRECTORY_H_

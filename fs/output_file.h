// A file that a program writes at its end.

#ifndef HAWSER_FS_OUTPUT_FILE_H_
#define HAWSER_FS_OUTPUT_FILE_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace hawser::fs {

// A file that a flag names, for the result of hours of work: it is checked
// before the work, and written elsewhere if it cannot be written then.
//
// Errors begin with the flag and the path. Thread-compatible.
class OutputFile {
 public:
  // `flag` is the name of the flag, without dashes; `content` what the file
  // has, such as "the model". An empty path stands for no file: nothing is
  // checked or written.
  OutputFile(std::string flag, std::string path, std::string content);

  // Checks that a file can be created at the path, by creating and removing a
  // temporary file beside it.
  absl::Status Check() const;

  // Calls `write` with the path, or, if that fails, with that of a file in a
  // new directory among the system's temporary files. The error, if the first
  // file cannot be written, says where the content is instead, or that it is
  // lost.
  absl::Status Write(
      absl::FunctionRef<absl::Status(const std::string& path)> write) const;

 private:
  std::string Prefix() const;

  const std::string flag_;
  const std::string path_;
  const std::string content_;
};

}  // namespace hawser::fs

#endif  // HAWSER_FS_OUTPUT_FILE_H_

#ifndef HAWSER_TESTS_TRAINING_TRAINING_PROGRAM_H_
#define HAWSER_TESTS_TRAINING_TRAINING_PROGRAM_H_

#include <chrono>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "nlohmann/json.hpp"
#include "tests/program.h"

namespace hawser::tests {

// An example that trains a model in several processes and prints its result as
// a line of JSON, with a silent limit for machines that may stall for seconds.
class TrainingProgram : public Program {
 public:
  TrainingProgram(const std::string& path,
                  const std::vector<std::string>& flags);

  // The result of a run that succeeds; fails the test otherwise.
  nlohmann::json Result();

  // Expects that the program ends with code 1, `error` in the only line of its
  // errors, and no output.
  void ExpectError(const std::string& error);
};

// A file or directory of the test, which may exist.
std::string TemporaryPath(const std::string& name);

// Writes a file and returns the flag that names it: "--data=PATH".
std::string DataFlag(const std::string& name, const std::string& text);

// Waits until `done` returns true, which is called after each change of a file
// in `directory`. False after `limit`.
bool WaitForFiles(const std::string& directory, absl::FunctionRef<bool()> done,
                  std::chrono::seconds limit = std::chrono::seconds(60));

}  // namespace hawser::tests

#endif  // HAWSER_TESTS_TRAINING_TRAINING_PROGRAM_H_

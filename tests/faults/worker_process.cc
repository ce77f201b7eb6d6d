#include "tests/faults/worker_process.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace hawser::tests {

WorkerProcess::WorkerProcess(const WorkerProcessOptions& options)
    : ReportingProcess(
          "tests/faults/fault_worker",
          {absl::StrCat("--store=", options.store),
           absl::StrCat("--name=", options.name),
           absl::StrCat("--rank=", options.rank),
           absl::StrCat("--job=", options.job),
           absl::StrCat("--bind=", options.bind_address),
           absl::StrCat("--advertise=", options.advertise_address),
           absl::StrCat("--same_host=", options.same_host ? "true" : "false"),
           absl::StrCat("--uid=", options.uid),
           absl::StrCat("--silent_limit=",
                        absl::FormatDuration(options.liveness.silent_limit)),
           absl::StrCat(
               "--unreachable_limit=",
               absl::FormatDuration(options.liveness.unreachable_limit))},
          options.max_data_bytes) {}

bool WorkerProcess::AwaitReady() {
  const std::string line = ReadLine().value_or("nothing");
  std::vector<std::string> words = absl::StrSplit(line, ' ');
  if (words.size() != 3 || words[0] != "ready") {
    ADD_FAILURE() << "the worker did not join, but reported " << line;
    return false;
  }
  address_ = std::move(words[1]);
  incarnation_ = std::move(words[2]);
  return true;
}

}  // namespace hawser::tests

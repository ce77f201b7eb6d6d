#ifndef HAWSER_LAUNCH_RUN_STREAM_CHOICE_H_
#define HAWSER_LAUNCH_RUN_STREAM_CHOICE_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"

namespace hawser::launch {

// A choice of output streams of the processes of a node, in torchrun's form:
// "0" none, "1" standard output, "2" standard error, "3" both; the same for
// single processes by their local ranks, as in "0:3,2:1". Processes that are
// not named then have none.
struct StreamChoice {
  struct Streams {
    bool output = false;
    bool error = false;
    bool operator==(const Streams&) const = default;
  };

  // For processes that `by_local_rank` does not have.
  Streams others = {};
  std::map<int, Streams> by_local_rank = {};

  Streams Of(int local_rank) const;
  // Whether no process has any stream.
  bool empty() const;
};

// kInvalidArgument says which part of `text` is malformed.
absl::StatusOr<StreamChoice> ParseStreamChoice(const std::string& text);

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_RUN_STREAM_CHOICE_H_

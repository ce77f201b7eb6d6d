// Validation of the names of jobs, workers and roles.

#ifndef HAWSER_NET_NAME_H_
#define HAWSER_NET_NAME_H_

#include <string_view>

#include "absl/status/status.h"

namespace hawser::net {

// kInvalidArgument unless `name` is 1 to 127 letters, digits and "-_:.", the
// first a letter or digit: it may be the name of a directory, and is no option
// of a command. `what` it is the name of: "job".
absl::Status ValidateName(std::string_view what, std::string_view name);

}  // namespace hawser::net

#endif  // HAWSER_NET_NAME_H_

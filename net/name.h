// Validation of the names of jobs, workers and roles.

#ifndef HAWSER_NET_NAME_H_
#define HAWSER_NET_NAME_H_

#include <string_view>

#include "absl/status/status.h"

namespace hawser::net {

// kInvalidArgument unless `name` is 1 to 127 letters, digits and "-_:.",
// starting with a letter or digit. Such a name can be used as a directory name
// and cannot be mistaken for a command-line option. `what` names the kind of
// name in the error, such as "job".
absl::Status ValidateName(std::string_view what, std::string_view name);

}  // namespace hawser::net

#endif  // HAWSER_NET_NAME_H_

// Options that launchers set as environment variables.

#ifndef HAWSER_LAUNCH_ENVIRONMENT_H_
#define HAWSER_LAUNCH_ENVIRONMENT_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace hawser::launch {

// `value`, or else the number in the environment variable `variable`; nullopt
// if neither is set. kInvalidArgument, naming the variable, if it is not an
// integer.
absl::StatusOr<std::optional<int>> IntOrEnvironment(std::optional<int> value,
                                                    const char* variable);

// `value`, or if it is empty the environment variable `variable`, or if that is
// not set `otherwise`.
std::string StringOrEnvironment(const std::string& value, const char* variable,
                                const char* otherwise);

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_ENVIRONMENT_H_

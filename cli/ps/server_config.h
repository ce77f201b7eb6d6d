// Configuration of `hawser ps`: built-in defaults, a file, and flags.

#ifndef HAWSER_CLI_PS_SERVER_CONFIG_H_
#define HAWSER_CLI_PS_SERVER_CONFIG_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "launch/worker_options.h"
#include "proto/ps_server.pb.h"

namespace hawser::cli {

// The values of settings that are set nowhere.
v1::TableServerConfig DefaultServerConfig();

// The permitted values of a number, by the name of its field.
struct SettingRange {
  const char* field;
  int64_t min;
  int64_t max;
};
std::span<const SettingRange> SettingRanges();

// Reads a file in text format. kInvalidArgument: the file cannot be read or
// parsed, has an unknown field, or a value is out of range; names file, line
// and field.
absl::StatusOr<v1::TableServerConfig> ReadServerConfig(const std::string& path);

// The text of such a file, with all values that are set.
std::string ServerConfigText(const v1::TableServerConfig& config);

// Options of a worker that serves tables. `config` has the defaults.
launch::WorkerOptions WorkerOptionsOf(const v1::TableServerConfig& config);

}  // namespace hawser::cli

#endif  // HAWSER_CLI_PS_SERVER_CONFIG_H_

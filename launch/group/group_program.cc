#include "launch/group/group_program.h"

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "launch/group/join_group.h"
#include "launch/process_place.h"
#include "launch/run/console.h"
#include "launch/run/launcher.h"
#include "launch/run/run_options.h"
#include "telemetry/terminal.h"

namespace hawser::launch {
namespace {

absl::Status RunRank(const GroupProgram& program) {
  ASSIGN_OR_RETURN(const auto group, JoinGroup(program.group));
  return program.run(*group);
}

absl::StatusOr<int> StartProcesses(const GroupProgram& program,
                                   const std::vector<std::string>& command) {
  RunFlags flags;
  flags.nproc_per_node = absl::StrCat(program.processes);
  flags.standalone = true;
  ASSIGN_OR_RETURN(const RunOptions options, ParseRunFlags(flags, command));
  Console console({.output_colours = telemetry::CanRedraw(STDOUT_FILENO),
                   .error_colours = telemetry::CanRedraw(STDERR_FILENO)});
  return RunProgram(options, &console);
}

absl::StatusOr<int> Run(const GroupProgram& program,
                        const std::vector<std::string>& command) {
  ASSIGN_OR_RETURN(const ProcessPlace place, PlaceFromEnvironment());
  if (!place.rank.has_value() && program.processes > 1) {
    return StartProcesses(program, command);
  }
  RETURN_IF_ERROR(RunRank(program));
  return 0;
}

}  // namespace

int RunGroupProgram(const GroupProgram& program,
                    const std::vector<std::string>& command) {
  const absl::StatusOr<int> code = Run(program, command);
  if (code.ok()) return *code;
  std::fprintf(stderr, "%s: %s\n", program.name.c_str(),
               std::string(code.status().message()).c_str());
  return 1;
}

}  // namespace hawser::launch

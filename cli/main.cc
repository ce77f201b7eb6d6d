#include <unistd.h>

#include <iostream>
#include <string>
#include <vector>

#include "cli/run.h"
#include "telemetry/terminal.h"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return hawser::cli::Run(arguments, std::cout, std::cerr,
                          hawser::telemetry::TerminalColumns(STDOUT_FILENO));
}

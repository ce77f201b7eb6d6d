#include "examples/mnist_ps/usage.h"

#include <cstddef>
#include <map>
#include <string_view>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "telemetry/wrap_text.h"

namespace hawser::examples::mnist_ps {
namespace {

constexpr size_t kDefaultColumns = 80;
constexpr size_t kIndent = 6;

// The default value as it is written on a command line.
std::string DefaultOf(const absl::CommandLineFlag& flag) {
  const std::string value = flag.DefaultValue();
  const bool plain = !value.empty() && !absl::StrContains(value, "(");
  return plain ? value : absl::StrCat("'", value, "'");
}

// The flags of options.cc.
std::map<std::string, absl::CommandLineFlag*> FlagsByName() {
  std::map<std::string, absl::CommandLineFlag*> flags;
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    if (absl::EndsWith(flag->Filename(), "examples/mnist_ps/options.cc")) {
      flags[std::string(name)] = flag;
    }
  }
  return flags;
}

}  // namespace

std::string Usage(int columns) {
  const size_t width =
      columns > 0 ? static_cast<size_t>(columns) : kDefaultColumns;
  const auto wrap = [width](std::string_view text, size_t indent) {
    return telemetry::WrapText(text, indent, width);
  };
  std::string usage = absl::StrCat(
      wrap("Trains a digit classifier with its parameters on server processes. "
           "Without --role or --local, starts all processes of the job on this "
           "machine.",
           0),
      "\n  mnist_ps --servers=2 --trainers=2\n",
      "  mnist_ps --local --epochs=1\n",
      wrap("mnist_ps --data_dir=DIR --holdout=2000", 2),
      wrap("mnist_ps --role=server --master=127.0.0.1:29500", 2),
      "\nFlags with their default values:\n");
  for (const auto& [name, flag] : FlagsByName()) {
    absl::StrAppend(&usage, "  --", name, "=", DefaultOf(*flag), "\n",
                    wrap(flag->Help(), kIndent));
  }
  absl::StrAppend(
      &usage, "\nThe result is one line of JSON on standard output:\n",
      "  test_accuracy\n",
      wrap("Fraction of the test samples that the final model classifies "
           "correctly.",
           kIndent),
      "  final_loss\n",
      wrap("Mean loss of the final model over the test samples.", kIndent),
      "  samples_per_s\n",
      wrap("Training samples that all trainers have processed, per second from "
           "the first step to the end of the last trainer. The progress line "
           "shows the same number so far.",
           kIndent),
      "\n",
      wrap("The exit code is 0 after success, 1 after an error, 3 if this "
           "process ended because another one has failed or cannot be reached, "
           "130 after Ctrl-C (SIGINT) and 143 after SIGTERM.",
           0));
  return usage;
}

}  // namespace hawser::examples::mnist_ps

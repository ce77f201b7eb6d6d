// The text that a program prints for --help.

#ifndef HAWSER_LAUNCH_JOB_USAGE_H_
#define HAWSER_LAUNCH_JOB_USAGE_H_

#include <string>
#include <utility>
#include <vector>

namespace hawser::launch {

struct UsageText {
  // A paragraph.
  std::string summary = {};
  // Examples of command lines.
  std::vector<std::string> commands = {};
  // Names and meanings of the numbers in the line of JSON that the program
  // prints.
  std::vector<std::pair<std::string, std::string>> results = {};
  // A paragraph at the end.
  std::string remarks = {};
};

// Returns the text, with all Abseil flags that are defined in source files
// whose names end with one of `files`, and their default values. Lines are
// at most `columns` wide; 0: 80.
std::string Usage(const UsageText& text, const std::vector<std::string>& files,
                  int columns);

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_JOB_USAGE_H_

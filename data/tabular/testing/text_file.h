// Files and samples of tests.

#ifndef HAWSER_DATA_TABULAR_TESTING_TEXT_FILE_H_
#define HAWSER_DATA_TABULAR_TESTING_TEXT_FILE_H_

#include <fstream>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "data/tabular/samples.h"
#include "gtest/gtest.h"

namespace hawser::data {

// Writes a file for a test and returns its path.
inline std::string WriteTextFile(const std::string& name,
                                 std::string_view text) {
  std::string path = absl::StrCat(testing::TempDir(), "/", name);
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

// All samples of a reader.
inline absl::StatusOr<Samples> ReadSamples(SampleReader& reader) {
  Samples samples;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reader.Next(&samples));
    if (!more) return samples;
  }
}

}  // namespace hawser::data

#endif  // HAWSER_DATA_TABULAR_TESTING_TEXT_FILE_H_

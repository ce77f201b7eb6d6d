// Any bytes as a file of samples, of which the first byte chooses the format.

#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/check.h"
#include "data/tabular/criteo_reader.h"
#include "data/tabular/libsvm_reader.h"
#include "data/tabular/ratings_reader.h"
#include "data/tabular/samples.h"

namespace hawser::data {
namespace {

absl::StatusOr<std::unique_ptr<SampleReader>> Open(uint8_t format,
                                                   const std::string& path) {
  if (format % 3 == 0) return CriteoReader::Open(path);
  if (format % 3 == 1) return RatingsReader::Open(path);
  const absl::StatusOr<int64_t> width = LibsvmWidth(path);
  if (!width.ok()) return width.status();
  return LibsvmReader::Open(path, *width);
}

void CheckSamples(const Samples& samples, const SampleWidth& width) {
  const size_t size = samples.labels.size();
  HAWSER_CHECK(samples.dense.size() == size * static_cast<size_t>(width.dense))
      << "dense features";
  HAWSER_CHECK(samples.keys.size() == size * static_cast<size_t>(width.keys))
      << "keys";
  HAWSER_CHECK(samples.values.size() == samples.keys.size()) << "values";
  for (const float value : samples.dense) {
    HAWSER_CHECK(std::isfinite(value)) << "dense feature";
  }
  for (const float value : samples.values) {
    HAWSER_CHECK(std::isfinite(value)) << "value";
  }
  for (const float label : samples.labels) {
    HAWSER_CHECK(std::isfinite(label)) << "label";
  }
}

void ReadAll(uint8_t format, const std::string& path) {
  auto reader = Open(format, path);
  absl::Status status = reader.status();
  Samples samples;
  while (status.ok()) {
    const absl::StatusOr<bool> more = (*reader)->Next(&samples);
    status = more.status();
    if (!more.ok()) break;
    CheckSamples(samples, (*reader)->width());
    if (!*more) break;
    samples = Samples();
  }
  HAWSER_CHECK(status.ok() || absl::IsInvalidArgument(status))
      << status.message();
}

}  // namespace
}  // namespace hawser::data

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const int file = memfd_create("samples", 0);
  HAWSER_CHECK(file >= 0) << "memfd_create";
  const ssize_t written = write(file, data + 1, size - 1);
  HAWSER_CHECK(written == static_cast<ssize_t>(size - 1)) << "write";
  hawser::data::ReadAll(data[0], absl::StrCat("/proc/self/fd/", file));
  close(file);
  return 0;
}

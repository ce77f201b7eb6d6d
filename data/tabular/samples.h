// Samples of models with embeddings, such as clicks and ratings.

#ifndef HAWSER_DATA_TABULAR_SAMPLES_H_
#define HAWSER_DATA_TABULAR_SAMPLES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"

namespace hawser::data {

// Numbers of columns.
struct SampleWidth {
  int64_t dense = 0;
  int64_t keys = 0;

  friend bool operator==(const SampleWidth&, const SampleWidth&) = default;
};

// Samples in columns, for n samples.
struct Samples {
  int64_t size() const { return static_cast<int64_t>(labels.size()); }

  std::vector<float> labels;  // [n]
  std::vector<float> dense;   // [n, width.dense]
  // Keys of the features that a sample has, 64-bit numbers without sign, and
  // their values, mostly 1. A sample with fewer features than others repeats a
  // key with the value 0.
  std::vector<int64_t> keys;  // [n, width.keys]
  std::vector<float> values;  // [n, width.keys]
  // The predictions of the model that generated the samples: no model
  // predicts better. [n], or empty if that model is not known.
  std::vector<float> ideal;
};

// A source of samples, in a fixed order. Not thread-safe.
class SampleReader {
 public:
  virtual ~SampleReader() = default;

  virtual const SampleWidth& width() const = 0;

  // Reads the next sample and appends it to `samples`. Null: skips the sample,
  // of which then only the extent is read. Returns false at the end.
  //
  // kInvalidArgument: names the file, the line, and the column or feature that
  // is wrong. `samples` may then have a part of the sample.
  virtual absl::StatusOr<bool> Next(Samples* samples) = 0;
};

// Opens a source at its begin.
using SampleOpener =
    std::function<absl::StatusOr<std::unique_ptr<SampleReader>>()>;

}  // namespace hawser::data

#endif  // HAWSER_DATA_TABULAR_SAMPLES_H_

// Ratings of items by users.

#ifndef HAWSER_DATA_TABULAR_RATINGS_READER_H_
#define HAWSER_DATA_TABULAR_RATINGS_READER_H_

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/tabular/line_reader.h"
#include "data/tabular/samples.h"

namespace hawser::data {

// Reads a file of lines "user,item,rating" or "user,item,rating,timestamp",
// plain or gzip-compressed, with any separator: "::", a tab, a comma. If the
// rating of the first line is not a number, that line is a header. Empty lines
// are left out.
//
// Samples have the rating as label and two keys, for the user and the item. An
// id of digits must be below 2^64 and is the key itself; the key of another
// text is FeatureKey("user", text) or FeatureKey("item", text). The timestamp
// must be a number and is not used.
class RatingsReader final : public SampleReader {
 public:
  // `separator` empty: the first characters of the first line that are neither
  // letters nor digits nor one of "_-+.". Errors of LineReader::Open.
  static absl::StatusOr<std::unique_ptr<RatingsReader>> Open(
      std::string path, std::string separator = "");

  const SampleWidth& width() const override { return width_; }
  absl::StatusOr<bool> Next(Samples* samples) override;

 private:
  RatingsReader(LineReader lines, std::string separator)
      : lines_(std::move(lines)), separator_(std::move(separator)) {}

  absl::Status Append(std::string_view line, Samples& samples) const;
  absl::Status AppendId(const char* field, std::string_view id,
                        Samples& samples) const;
  bool IsHeader(std::string_view line) const;

  LineReader lines_;
  std::string separator_;
  bool begun_ = false;
  const SampleWidth width_ = {.keys = 2};
};

}  // namespace hawser::data

#endif  // HAWSER_DATA_TABULAR_RATINGS_READER_H_

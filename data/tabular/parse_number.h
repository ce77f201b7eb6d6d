// Numbers in text files.

#ifndef HAWSER_DATA_TABULAR_PARSE_NUMBER_H_
#define HAWSER_DATA_TABULAR_PARSE_NUMBER_H_

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"

namespace hawser::data {

// Numbers as a whole text, without spaces. kInvalidArgument quotes the text and
// says what is wrong, without the place.

// Digits only, below 2^64.
absl::StatusOr<uint64_t> ParseKey(std::string_view text);

// Digits, after '-' if it is negative, in the range of int64_t.
absl::StatusOr<int64_t> ParseInteger(std::string_view text);

// A decimal number, also with a sign, a fraction and an exponent, that is
// finite as a float.
absl::StatusOr<float> ParseFloat(std::string_view text);

}  // namespace hawser::data

#endif  // HAWSER_DATA_TABULAR_PARSE_NUMBER_H_

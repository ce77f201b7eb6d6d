// Text broken into lines of a limited width.

#ifndef HAWSER_TELEMETRY_WRAP_TEXT_H_
#define HAWSER_TELEMETRY_WRAP_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace hawser::telemetry {

// Breaks `text` at its spaces into lines of at most `columns` bytes, each of
// which begins with `indent` spaces and ends with "\n". A word that is longer
// has a line of its own.
std::string WrapText(std::string_view text, size_t indent, size_t columns);

}  // namespace hawser::telemetry

#endif  // HAWSER_TELEMETRY_WRAP_TEXT_H_

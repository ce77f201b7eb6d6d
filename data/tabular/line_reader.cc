#include "data/tabular/line_reader.h"

#include <cstring>
#include <span>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"

namespace hawser::data {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 18;
constexpr size_t kMaxQuotedBytes = 40;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

absl::StatusOr<LineReader> LineReader::Open(std::string path) {
  ASSIGN_OR_RETURN(GzipReader file, GzipReader::Open(std::move(path)));
  return LineReader(std::move(file));
}

absl::Status LineReader::Fill() {
  buffer_.erase(0, begin_);
  end_ -= begin_;
  begin_ = 0;
  buffer_.resize(end_ + kBufferBytes);
  ASSIGN_OR_RETURN(const size_t got,
                   file_.Read(std::span(buffer_).subspan(end_)));
  at_end_ = got < kBufferBytes;
  end_ += got;
  return absl::OkStatus();
}

absl::StatusOr<std::optional<std::string_view>> LineReader::Next() {
  ++line_number_;
  size_t searched = 0;
  std::string_view line;
  while (true) {
    line = std::string_view(buffer_).substr(begin_, end_ - begin_);
    const size_t newline = line.find('\n', searched);
    if (newline != std::string_view::npos) {
      line = line.substr(0, newline);
      begin_ += newline + 1;
      break;
    }
    if (line.size() > kMaxLineBytes) break;
    if (at_end_) {
      if (line.empty()) return std::nullopt;
      begin_ = end_;
      break;
    }
    searched = line.size();
    RETURN_IF_ERROR(Fill());
  }
  if (line.size() > kMaxLineBytes) {
    return Error(
        absl::StrCat("the line has more than ", kMaxLineBytes, " bytes"));
  }
  if (line.find('\0') != std::string_view::npos) {
    return Error("the line has a NUL byte: this is not a text file");
  }
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line_number_ == 1 && line.starts_with(kByteOrderMark)) {
    line.remove_prefix(kByteOrderMark.size());
  }
  return line;
}

absl::Status LineReader::Error(const std::string& message) const {
  return absl::InvalidArgumentError(
      absl::StrCat(path(), ":", line_number_, ": ", message));
}

std::string Quoted(std::string_view text) {
  const bool cut = text.size() > kMaxQuotedBytes;
  return absl::StrCat(
      "\"", absl::CHexEscape(std::string(text.substr(0, kMaxQuotedBytes))),
      cut ? "..." : "", "\"");
}

}  // namespace hawser::data

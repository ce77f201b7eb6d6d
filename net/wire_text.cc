#include "net/wire_text.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace hawser::net {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";
constexpr std::string_view kEllipsis = "...";
constexpr uint64_t kNotAscii = 0x8080808080808080;

bool IsContinuation(unsigned char c) { return (c & 0xc0) == 0x80; }

// The bytes of the UTF-8 character at the start of `text`; 0 if there is none.
size_t CharacterLength(std::string_view text) {
  const auto byte = [&](size_t i) {
    return static_cast<unsigned char>(text[i]);
  };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  size_t length = 0;
  // The second byte's range excludes overlong forms, surrogates and what lies
  // above U+10FFFF.
  unsigned char low = 0x80;
  unsigned char high = 0xbf;
  if (lead >= 0xc2 && lead <= 0xdf) {
    length = 2;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    length = 3;
    if (lead == 0xe0) low = 0xa0;
    if (lead == 0xed) high = 0x9f;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    length = 4;
    if (lead == 0xf0) low = 0x90;
    if (lead == 0xf4) high = 0x8f;
  } else {
    return 0;
  }
  if (text.size() < length || byte(1) < low || byte(1) > high) return 0;
  for (size_t i = 2; i < length; ++i) {
    if (!IsContinuation(byte(i))) return 0;
  }
  return length;
}

}  // namespace

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    // Eight ASCII characters at a time.
    uint64_t word = 0;
    while (text.size() >= sizeof(word)) {
      std::memcpy(&word, text.data(), sizeof(word));
      if ((word & kNotAscii) != 0) break;
      text.remove_prefix(sizeof(word));
    }
    if (text.empty()) break;
    const size_t length = CharacterLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

absl::Status CheckUtf8(std::string_view what, std::string_view text) {
  if (IsUtf8(text)) return absl::OkStatus();
  const std::string_view shown =
      text.substr(0, std::min(text.size(), kMaxErrorTextBytes / 8));
  return absl::InvalidArgumentError(absl::StrCat(
      absl::string_view(what.data(), what.size()), " '",
      absl::CHexEscape(absl::string_view(shown.data(), shown.size())),
      "' is not UTF-8"));
}

std::string ToErrorText(std::string_view text) {
  std::string sent;
  // As much of it as an ellipsis may follow.
  size_t kept = 0;
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    const std::string_view character =
        length == 0 ? kReplacement : text.substr(0, length);
    if (sent.size() + character.size() > kMaxErrorTextBytes) {
      sent.resize(kept);
      sent += kEllipsis;
      return sent;
    }
    sent += character;
    if (sent.size() + kEllipsis.size() <= kMaxErrorTextBytes) {
      kept = sent.size();
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return sent;
}

std::string ToErrorText(const absl::Status& status) {
  const absl::string_view message = status.message();
  return ToErrorText(std::string_view(message.data(), message.size()));
}

}  // namespace hawser::net

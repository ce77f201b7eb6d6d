#include "store/hash/value_operations.h"

#include <charconv>
#include <system_error>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"

namespace hawser::store::internal {
namespace {

std::string Escaped(std::string_view text) {
  return absl::CEscape(absl::string_view(text.data(), text.size()));
}

}  // namespace

absl::StatusOr<int64_t> AddToNumber(std::string_view key,
                                    const std::string* value, int64_t delta) {
  if (value == nullptr) return delta;
  int64_t number = 0;
  const char* const end = value->data() + value->size();
  const auto [parsed, error] = std::from_chars(value->data(), end, number);
  if (error != std::errc() || parsed != end) {
    return absl::InvalidArgumentError(
        absl::StrCat("key \"", Escaped(key), "\" holds \"",
                     Escaped(std::string_view(*value).substr(0, 40)),
                     "\", which is not a number to add to"));
  }
  int64_t sum = 0;
  if (__builtin_add_overflow(number, delta, &sum)) {
    return absl::OutOfRangeError(absl::StrCat("key \"", Escaped(key),
                                              "\": ", number, " + ", delta,
                                              " does not fit in 64 bits"));
  }
  return sum;
}

bool IsExpected(const std::string* value, std::string_view expected) {
  return value == nullptr ? expected.empty() : *value == expected;
}

bool IsAsKnown(const std::string* value,
               const std::optional<std::string>& known) {
  return known.has_value() ? IsExpected(value, *known) : value != nullptr;
}

absl::StatusOr<std::optional<std::vector<std::string>>> ChangedValues(
    std::span<const WatchedKey> keys,
    absl::FunctionRef<const std::string*(const std::string& key)> find,
    const std::function<absl::Status(size_t bytes)>& admit) {
  constexpr size_t kValueOverheadBytes = 16;
  bool changed = false;
  size_t bytes = 0;
  for (const WatchedKey& watched : keys) {
    const std::string* const value = find(watched.key);
    changed = changed || !IsAsKnown(value, watched.known);
    bytes += kValueOverheadBytes + (value == nullptr ? 0 : value->size());
  }
  if (!changed) return std::nullopt;
  // A key may be listed many times.
  if (bytes > kMaxWatchedBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the values of ", keys.size(), " watched keys have ",
                     bytes, " bytes, the limit is ", kMaxWatchedBytes));
  }
  if (admit != nullptr) RETURN_IF_ERROR(admit(bytes));
  std::vector<std::string> values;
  values.reserve(keys.size());
  for (const WatchedKey& watched : keys) {
    const std::string* const value = find(watched.key);
    values.push_back(value == nullptr ? "" : *value);
  }
  return values;
}

absl::StatusOr<std::string> Appended(std::string_view key,
                                     const std::string* value,
                                     std::string_view suffix,
                                     uint64_t max_bytes) {
  const uint64_t old_bytes = value == nullptr ? 0 : value->size();
  if (old_bytes + suffix.size() > max_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "key \"", Escaped(key), "\": appending ", suffix.size(), " bytes to ",
        old_bytes, " passes the limit of ", max_bytes));
  }
  std::string result;
  result.reserve(old_bytes + suffix.size());
  if (value != nullptr) result = *value;
  result.append(suffix);
  return result;
}

}  // namespace hawser::store::internal

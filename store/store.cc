#include "store/store.h"

#include <chrono>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"

namespace hawser::store {
namespace {

constexpr absl::Duration kLookTimeout = absl::Seconds(1);

// Keys may be any bytes; in an error they are printable and short.
std::string Quoted(std::string_view key) {
  constexpr size_t kShown = 200;
  const bool cut = key.size() > kShown;
  if (cut) key = key.substr(0, kShown);
  return absl::StrCat("\"",
                      absl::CEscape(absl::string_view(key.data(), key.size())),
                      cut ? "...\"" : "\"");
}

absl::Status CheckTimeout(absl::Duration timeout) {
  if (timeout >= absl::ZeroDuration()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the timeout ", absl::FormatDuration(timeout),
                   " is negative; absl::InfiniteDuration() waits for ever"));
}

}  // namespace

Store::Store(std::string description, absl::Duration timeout,
             StoreLimits limits)
    : description_(std::move(description)),
      limits_(limits),
      timeout_(timeout) {}

absl::Status Store::Set(std::string_view key, std::string_view value) {
  RETURN_IF_ERROR(CheckKey(key));
  RETURN_IF_ERROR(CheckValue(key, value));
  return DoSet(std::string(key), std::string(value), Now());
}

absl::StatusOr<std::string> Store::Get(std::string_view key,
                                       std::optional<absl::Duration> timeout) {
  RETURN_IF_ERROR(CheckKey(key));
  ASSIGN_OR_RETURN(const CallTime time, Within(timeout));
  return DoGet(std::string(key), time);
}

absl::StatusOr<int64_t> Store::Add(std::string_view key, int64_t delta) {
  RETURN_IF_ERROR(CheckKey(key));
  return DoAdd(std::string(key), delta, Now());
}

absl::StatusOr<int64_t> Store::Append(std::string_view key,
                                      std::string_view suffix) {
  RETURN_IF_ERROR(CheckKey(key));
  RETURN_IF_ERROR(CheckValue(key, suffix));
  return DoAppend(std::string(key), std::string(suffix), Now());
}

absl::StatusOr<CompareAndSetResult> Store::CompareAndSet(
    std::string_view key, std::string_view expected, std::string_view desired) {
  RETURN_IF_ERROR(CheckKey(key));
  RETURN_IF_ERROR(CheckValue(key, expected));
  RETURN_IF_ERROR(CheckValue(key, desired));
  return DoCompareAndSet(std::string(key), std::string(expected),
                         std::string(desired), Now());
}

absl::Status Store::Wait(std::span<const std::string> keys,
                         std::optional<absl::Duration> timeout) {
  RETURN_IF_ERROR(CheckKeys(keys));
  ASSIGN_OR_RETURN(const CallTime time, Within(timeout));
  if (keys.empty()) return absl::OkStatus();
  return DoWait(keys, time);
}

absl::StatusOr<bool> Store::Check(std::span<const std::string> keys) {
  RETURN_IF_ERROR(CheckKeys(keys));
  if (keys.empty()) return true;
  return DoCheck(keys, Now());
}

absl::StatusOr<bool> Store::Delete(std::string_view key) {
  RETURN_IF_ERROR(CheckKey(key));
  return DoDelete(std::string(key), Now());
}

absl::StatusOr<int64_t> Store::NumKeys() { return DoNumKeys(Now()); }

absl::Duration Store::timeout() const {
  async::MutexLock lock(&mutex_);
  return timeout_;
}

absl::Status Store::SetTimeout(absl::Duration timeout) {
  RETURN_IF_ERROR(CheckTimeout(timeout));
  async::MutexLock lock(&mutex_);
  timeout_ = timeout;
  return absl::OkStatus();
}

async::MonotonicTime Store::LookDeadline(const CallTime& time) {
  return time.deadline > time.start ? time.deadline
                                    : async::AddDelay(time.start, kLookTimeout);
}

absl::Status Store::TimeoutError(std::string_view key, const CallTime& time,
                                 std::string_view cause) const {
  const absl::Duration waited =
      async::TimeBetween(time.start, std::chrono::steady_clock::now());
  return absl::DeadlineExceededError(absl::StrCat(
      description_, ": timed out after ",
      absl::FormatDuration(absl::Trunc(waited, absl::Microseconds(1))),
      key.empty() ? "" : absl::StrCat(" waiting for key ", Quoted(key)),
      cause.empty() ? "" : ": ",
      absl::string_view(cause.data(), cause.size())));
}

absl::Status Store::CheckKey(std::string_view key) const {
  if (key.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(description_, ": the key is empty"));
  }
  if (key.size() > limits_.max_key_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(description_, ": key ", Quoted(key), " has ", key.size(),
                     " bytes, the limit is ", limits_.max_key_bytes));
  }
  return absl::OkStatus();
}

absl::Status Store::CheckKeys(std::span<const std::string> keys) const {
  for (const std::string& key : keys) RETURN_IF_ERROR(CheckKey(key));
  return absl::OkStatus();
}

absl::Status Store::CheckValue(std::string_view key,
                               std::string_view value) const {
  if (value.size() <= limits_.max_value_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      description_, ": a value for key ", Quoted(key), " has ", value.size(),
      " bytes, the limit is ", limits_.max_value_bytes));
}

Store::CallTime Store::Now() const {
  const async::MonotonicTime now = std::chrono::steady_clock::now();
  return {.start = now, .deadline = async::AddDelay(now, timeout())};
}

absl::StatusOr<Store::CallTime> Store::Within(
    std::optional<absl::Duration> timeout) const {
  if (!timeout.has_value()) return Now();
  RETURN_IF_ERROR(CheckTimeout(*timeout));
  const async::MonotonicTime now = std::chrono::steady_clock::now();
  return CallTime{.start = now, .deadline = async::AddDelay(now, *timeout)};
}

}  // namespace hawser::store

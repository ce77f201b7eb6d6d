#include "store/store.h"

#include <chrono>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"

namespace hawser::store {
namespace {

constexpr absl::Duration kLookTimeout = absl::Seconds(1);

// Keys may be any bytes; errors show them escaped and shortened.
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
  return absl::InvalidArgumentError(absl::StrCat(
      "the timeout ", absl::FormatDuration(timeout),
      " is negative; use absl::InfiniteDuration() to wait forever"));
}

absl::Status CheckLifetime(absl::Duration lifetime) {
  if (lifetime >= kMinLifetime && lifetime <= kMaxLifetime) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the lifetime ", absl::FormatDuration(lifetime),
      " of a lease is not within ", absl::FormatDuration(kMinLifetime), " and ",
      absl::FormatDuration(kMaxLifetime)));
}

}  // namespace

Store::Store(std::string description, absl::Duration timeout,
             StoreLimits limits)
    : description_(std::move(description)),
      limits_(limits),
      timeout_(timeout) {}

absl::Status Store::Set(std::string_view key, std::string_view value,
                        std::optional<absl::Duration> timeout) {
  RETURN_IF_ERROR(CheckKey(key));
  RETURN_IF_ERROR(CheckValue(key, value));
  ASSIGN_OR_RETURN(const CallTime time, Within(timeout));
  return DoSet(std::string(key), std::string(value), time);
}

absl::Status Store::SetLease(std::string_view key, std::string_view value,
                             absl::Duration lifetime,
                             std::optional<absl::Duration> timeout) {
  RETURN_IF_ERROR(CheckKey(key));
  RETURN_IF_ERROR(CheckValue(key, value));
  RETURN_IF_ERROR(CheckLifetime(lifetime));
  ASSIGN_OR_RETURN(const CallTime time, Within(timeout));
  return DoSetLease(std::string(key), std::string(value), lifetime, time);
}

async::Future<std::vector<std::string>> Store::WhenChanged(
    std::vector<WatchedKey> keys) {
  absl::Status status =
      keys.empty() ? absl::InvalidArgumentError(absl::StrCat(
                         description_, ": a watch needs at least one key"))
                   : absl::OkStatus();
  for (const WatchedKey& watched : keys) {
    status.Update(CheckKey(watched.key));
    if (watched.known.has_value()) {
      status.Update(CheckValue(watched.key, *watched.known));
    }
  }
  if (!status.ok()) {
    return async::MakeReadyFuture<std::vector<std::string>>(std::move(status));
  }
  return DoWhenChanged(std::move(keys));
}

absl::StatusOr<std::string> Store::Get(std::string_view key,
                                       std::optional<absl::Duration> timeout) {
  RETURN_IF_ERROR(CheckKey(key));
  ASSIGN_OR_RETURN(const CallTime time, Within(timeout));
  return DoGet(std::string(key), time);
}

absl::StatusOr<int64_t> Store::Add(std::string_view key, int64_t delta,
                                   std::optional<absl::Duration> timeout) {
  RETURN_IF_ERROR(CheckKey(key));
  ASSIGN_OR_RETURN(const CallTime time, Within(timeout));
  return DoAdd(std::string(key), delta, time);
}

absl::StatusOr<int64_t> Store::Append(std::string_view key,
                                      std::string_view suffix,
                                      std::optional<absl::Duration> timeout) {
  RETURN_IF_ERROR(CheckKey(key));
  RETURN_IF_ERROR(CheckValue(key, suffix));
  ASSIGN_OR_RETURN(const CallTime time, Within(timeout));
  return DoAppend(std::string(key), std::string(suffix), time);
}

absl::StatusOr<CompareAndSetResult> Store::CompareAndSet(
    std::string_view key, std::string_view expected, std::string_view desired,
    std::optional<absl::Duration> timeout) {
  RETURN_IF_ERROR(CheckKey(key));
  RETURN_IF_ERROR(CheckValue(key, expected));
  RETURN_IF_ERROR(CheckValue(key, desired));
  ASSIGN_OR_RETURN(const CallTime time, Within(timeout));
  return DoCompareAndSet(std::string(key), std::string(expected),
                         std::string(desired), time);
}

absl::Status Store::Wait(std::span<const std::string> keys,
                         std::optional<absl::Duration> timeout) {
  RETURN_IF_ERROR(CheckKeys(keys));
  ASSIGN_OR_RETURN(const CallTime time, Within(timeout));
  if (keys.empty()) return absl::OkStatus();
  return DoWait(keys, time);
}

absl::StatusOr<bool> Store::Check(std::span<const std::string> keys,
                                  std::optional<absl::Duration> timeout) {
  RETURN_IF_ERROR(CheckKeys(keys));
  ASSIGN_OR_RETURN(const CallTime time, Within(timeout));
  if (keys.empty()) return true;
  return DoCheck(keys, time);
}

absl::StatusOr<bool> Store::Delete(std::string_view key,
                                   std::optional<absl::Duration> timeout) {
  RETURN_IF_ERROR(CheckKey(key));
  ASSIGN_OR_RETURN(const CallTime time, Within(timeout));
  return DoDelete(std::string(key), time);
}

absl::StatusOr<int64_t> Store::NumKeys(std::optional<absl::Duration> timeout) {
  ASSIGN_OR_RETURN(const CallTime time, Within(timeout));
  return DoNumKeys(time);
}

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

absl::Status Store::Named(const absl::Status& status, std::string_view key,
                          const CallTime& time) const {
  if (status.ok()) return status;
  if (!absl::IsDeadlineExceeded(status)) {
    return absl::Status(status.code(),
                        absl::StrCat(description_, ": ", status.message()));
  }
  if (time.deadline > time.start) {
    return TimeoutError(key, time, std::string(status.message()));
  }
  return absl::UnavailableError(absl::StrCat(
      description_, ": no reply within ", absl::FormatDuration(kLookTimeout),
      status.message().empty() ? "" : ": ", status.message()));
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

absl::StatusOr<Store::CallTime> Store::Within(
    std::optional<absl::Duration> timeout) const {
  const absl::Duration limit = timeout.value_or(this->timeout());
  RETURN_IF_ERROR(CheckTimeout(limit));
  const async::MonotonicTime now = std::chrono::steady_clock::now();
  return CallTime{.start = now, .deadline = async::AddDelay(now, limit)};
}

}  // namespace hawser::store

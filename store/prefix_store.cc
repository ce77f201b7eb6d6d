#include "store/prefix_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"

namespace hawser::store {

PrefixStore::PrefixStore(std::string_view prefix, std::shared_ptr<Store> base)
    : Store(absl::StrCat("prefix \"",
                         absl::string_view(prefix.data(), prefix.size()),
                         "\" of ", base->description()),
            base->timeout(), base->limits()),
      prefix_(prefix),
      base_(std::move(base)) {}

std::string PrefixStore::Full(std::string_view key) const {
  std::string full;
  full.reserve(prefix_.size() + 1 + key.size());
  full.append(prefix_).append("/").append(key);
  return full;
}

std::vector<std::string> PrefixStore::Full(
    std::span<const std::string> keys) const {
  std::vector<std::string> full;
  full.reserve(keys.size());
  for (const std::string& key : keys) full.push_back(Full(key));
  return full;
}

absl::Status PrefixStore::DoSet(const std::string& key, std::string value,
                                const CallTime& time) {
  const std::string full = Full(key);
  RETURN_IF_ERROR(base_->CheckKey(full));
  return base_->DoSet(full, std::move(value), time);
}

absl::Status PrefixStore::DoSetLease(const std::string& key, std::string value,
                                     absl::Duration lifetime,
                                     const CallTime& time) {
  const std::string full = Full(key);
  RETURN_IF_ERROR(base_->CheckKey(full));
  return base_->DoSetLease(full, std::move(value), lifetime, time);
}

async::Future<std::vector<std::string>> PrefixStore::DoWhenChanged(
    std::vector<WatchedKey> keys) {
  for (WatchedKey& watched : keys) {
    watched.key = Full(watched.key);
    if (absl::Status valid = base_->CheckKey(watched.key); !valid.ok()) {
      return async::MakeReadyFuture<std::vector<std::string>>(std::move(valid));
    }
  }
  return base_->DoWhenChanged(std::move(keys));
}

absl::StatusOr<std::string> PrefixStore::DoGet(const std::string& key,
                                               const CallTime& time) {
  const std::string full = Full(key);
  RETURN_IF_ERROR(base_->CheckKey(full));
  return base_->DoGet(full, time);
}

absl::StatusOr<int64_t> PrefixStore::DoAdd(const std::string& key,
                                           int64_t delta,
                                           const CallTime& time) {
  const std::string full = Full(key);
  RETURN_IF_ERROR(base_->CheckKey(full));
  return base_->DoAdd(full, delta, time);
}

absl::StatusOr<int64_t> PrefixStore::DoAppend(const std::string& key,
                                              std::string suffix,
                                              const CallTime& time) {
  const std::string full = Full(key);
  RETURN_IF_ERROR(base_->CheckKey(full));
  return base_->DoAppend(full, std::move(suffix), time);
}

absl::StatusOr<CompareAndSetResult> PrefixStore::DoCompareAndSet(
    const std::string& key, std::string expected, std::string desired,
    const CallTime& time) {
  const std::string full = Full(key);
  RETURN_IF_ERROR(base_->CheckKey(full));
  return base_->DoCompareAndSet(full, std::move(expected), std::move(desired),
                                time);
}

absl::Status PrefixStore::DoWait(std::span<const std::string> keys,
                                 const CallTime& time) {
  const std::vector<std::string> full = Full(keys);
  RETURN_IF_ERROR(base_->CheckKeys(full));
  return base_->DoWait(full, time);
}

absl::StatusOr<bool> PrefixStore::DoCheck(std::span<const std::string> keys,
                                          const CallTime& time) {
  const std::vector<std::string> full = Full(keys);
  RETURN_IF_ERROR(base_->CheckKeys(full));
  return base_->DoCheck(full, time);
}

absl::StatusOr<bool> PrefixStore::DoDelete(const std::string& key,
                                           const CallTime& time) {
  const std::string full = Full(key);
  RETURN_IF_ERROR(base_->CheckKey(full));
  return base_->DoDelete(full, time);
}

absl::StatusOr<int64_t> PrefixStore::DoNumKeys(const CallTime& time) {
  return base_->DoNumKeys(time);
}

}  // namespace hawser::store

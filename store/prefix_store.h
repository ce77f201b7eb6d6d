#ifndef HAWSER_STORE_PREFIX_STORE_H_
#define HAWSER_STORE_PREFIX_STORE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "store/store.h"

namespace hawser::store {

// A view of another store in which key "k" is "prefix/k", so that several users
// can share one store. Prefixes nest. NumKeys counts all keys of the underlying
// store. Errors are those of the underlying store and name its keys. Watches
// belong to the underlying store and end with it.
class PrefixStore final : public Store {
 public:
  // Starts with the timeout of `base`.
  PrefixStore(std::string_view prefix, std::shared_ptr<Store> base);

 private:
  absl::Status DoSet(const std::string& key, std::string value,
                     const CallTime& time) override;
  absl::Status DoSetLease(const std::string& key, std::string value,
                          absl::Duration lifetime,
                          const CallTime& time) override;
  async::Future<std::vector<std::string>> DoWhenChanged(
      std::vector<WatchedKey> keys) override;
  absl::StatusOr<std::string> DoGet(const std::string& key,
                                    const CallTime& time) override;
  absl::StatusOr<int64_t> DoAdd(const std::string& key, int64_t delta,
                                const CallTime& time) override;
  absl::StatusOr<int64_t> DoAppend(const std::string& key, std::string suffix,
                                   const CallTime& time) override;
  absl::StatusOr<CompareAndSetResult> DoCompareAndSet(
      const std::string& key, std::string expected, std::string desired,
      const CallTime& time) override;
  absl::Status DoWait(std::span<const std::string> keys,
                      const CallTime& time) override;
  absl::StatusOr<bool> DoCheck(std::span<const std::string> keys,
                               const CallTime& time) override;
  absl::StatusOr<bool> DoDelete(const std::string& key,
                                const CallTime& time) override;
  absl::StatusOr<int64_t> DoNumKeys(const CallTime& time) override;

  std::string Full(std::string_view key) const;
  std::vector<std::string> Full(std::span<const std::string> keys) const;

  const std::string prefix_;
  const std::shared_ptr<Store> base_;
};

}  // namespace hawser::store

#endif  // HAWSER_STORE_PREFIX_STORE_H_

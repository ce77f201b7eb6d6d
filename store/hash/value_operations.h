#ifndef HAWSER_STORE_HASH_VALUE_OPERATIONS_H_
#define HAWSER_STORE_HASH_VALUE_OPERATIONS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "store/store.h"

namespace hawser::store::internal {

// Semantics of the store's operations on one value; null stands for an absent
// key.

// kInvalidArgument if `value` is not a number, kOutOfRange on overflow.
absl::StatusOr<int64_t> AddToNumber(std::string_view key,
                                    const std::string* value, int64_t delta);

// Whether the value matches the expectation of compare-and-set.
bool IsExpected(const std::string* value, std::string_view expected);

// Whether the value is as known to a watch; see WatchedKey.
bool IsAsKnown(const std::string* value,
               const std::optional<std::string>& known);

// The values of `keys`, as found by `find(key)`, if one of them is not as
// known: the result of a watch; nullopt if it goes on. `find` returns a pointer
// that is valid during the call. kResourceExhausted if the values have more
// than kMaxWatchedBytes. `admit`, if set, gets their bytes before they are
// copied; returns its error.
absl::StatusOr<std::optional<std::vector<std::string>>> ChangedValues(
    std::span<const WatchedKey> keys,
    absl::FunctionRef<const std::string*(const std::string& key)> find,
    const std::function<absl::Status(size_t bytes)>& admit = nullptr);

// Returns `value` with the suffix appended; kInvalidArgument if it would exceed
// `max_bytes`.
absl::StatusOr<std::string> Appended(std::string_view key,
                                     const std::string* value,
                                     std::string_view suffix,
                                     uint64_t max_bytes);

}  // namespace hawser::store::internal

#endif  // HAWSER_STORE_HASH_VALUE_OPERATIONS_H_

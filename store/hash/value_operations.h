#ifndef HAWSER_STORE_HASH_VALUE_OPERATIONS_H_
#define HAWSER_STORE_HASH_VALUE_OPERATIONS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hawser::store::internal {

// Semantics of the store's operations on one value; null stands for an absent
// key.

// kInvalidArgument if `value` is not a number, kOutOfRange on overflow.
absl::StatusOr<int64_t> AddToNumber(std::string_view key,
                                    const std::string* value, int64_t delta);

// Whether the value matches the expectation of compare-and-set.
bool IsExpected(const std::string* value, std::string_view expected);

// Returns `value` with the suffix appended; kInvalidArgument if it would exceed
// `max_bytes`.
absl::StatusOr<std::string> Appended(std::string_view key,
                                     const std::string* value,
                                     std::string_view suffix,
                                     uint64_t max_bytes);

}  // namespace hawser::store::internal

#endif  // HAWSER_STORE_HASH_VALUE_OPERATIONS_H_

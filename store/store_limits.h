#ifndef HAWSER_STORE_STORE_LIMITS_H_
#define HAWSER_STORE_STORE_LIMITS_H_

#include <cstddef>

namespace hawser::store {

// Limits on the content of a store. Stores are for rendezvous, not for bulk
// data.
struct StoreLimits {
  // Maximum size of a key, including prefixes.
  size_t max_key_bytes = 4096;
  // Maximum size of a value.
  size_t max_value_bytes = size_t{4} << 20;
  // Maximum total size of all keys and values; a store in memory adds 148 bytes
  // per key.
  size_t max_total_bytes = size_t{1} << 30;
};

}  // namespace hawser::store

#endif  // HAWSER_STORE_STORE_LIMITS_H_

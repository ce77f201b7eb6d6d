#ifndef HAWSER_STORE_STORE_LIMITS_H_
#define HAWSER_STORE_STORE_LIMITS_H_

#include <cstddef>

namespace hawser::store {

// Limits on what a store accepts. Stores are for rendezvous, not for data.
struct StoreLimits {
  // Longest key, prefixes included.
  size_t max_key_bytes = 4096;
  // Longest value.
  size_t max_value_bytes = size_t{4} << 20;
  // All keys and values together; a store in memory counts 148 bytes for each
  // key besides.
  size_t max_total_bytes = size_t{1} << 30;
};

}  // namespace hawser::store

#endif  // HAWSER_STORE_STORE_LIMITS_H_

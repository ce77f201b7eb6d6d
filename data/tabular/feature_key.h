// Keys of categorical values.

#ifndef HAWSER_DATA_TABULAR_FEATURE_KEY_H_
#define HAWSER_DATA_TABULAR_FEATURE_KEY_H_

#include <cstdint>
#include <string_view>

namespace hawser::data {

// The key of `value` in `field`: a hash of both, so that equal values of
// different fields have different rows in a table. 64-bit FNV-1a over the
// field, a byte 0xFF and the value, then the finalizer of SplitMix64. Two of n
// values have the same key with a probability of about n^2 / 2^65: 0.003 for
// 3e8 values. The same on every machine and in every version.
uint64_t FeatureKey(std::string_view field, std::string_view value);

}  // namespace hawser::data

#endif  // HAWSER_DATA_TABULAR_FEATURE_KEY_H_

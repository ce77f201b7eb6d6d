// The common form of all samplers.

#ifndef HAWSER_DATA_SAMPLER_H_
#define HAWSER_DATA_SAMPLER_H_

#include <concepts>
#include <cstdint>
#include <vector>

namespace hawser::data {

// A sampler says which samples of a data set an epoch visits, in which order.
// It is an immutable value, is thread-safe, and has
//
//   count()         the number of samples of each epoch
//   Indices(epoch)  their `count()` indices; calls with the same epoch return
//                   the same on every machine
//
// There is no state to set per epoch, and no iterator: a Loader takes the
// indices of one epoch.
template <class T>
concept Sampler = requires(const T& sampler, int64_t epoch) {
  { sampler.count() } -> std::same_as<int64_t>;
  { sampler.Indices(epoch) } -> std::same_as<std::vector<int64_t>>;
};

}  // namespace hawser::data

#endif  // HAWSER_DATA_SAMPLER_H_

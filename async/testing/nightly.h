// Sizes of tests that have a nightly form (bazel/nightly_test.bzl).

#ifndef HAWSER_ASYNC_TESTING_NIGHTLY_H_
#define HAWSER_ASYNC_TESTING_NIGHTLY_H_

#include <cstdlib>

namespace hawser::async {

// Reports whether this process runs a nightly form: the environment has
// HAWSER_NIGHTLY.
inline bool IsNightly() { return std::getenv("HAWSER_NIGHTLY") != nullptr; }

// Returns `nightly` in a nightly form, otherwise `usual`.
template <typename T>
T NightlyOr(T nightly, T usual) {
  return IsNightly() ? nightly : usual;
}

}  // namespace hawser::async

#endif  // HAWSER_ASYNC_TESTING_NIGHTLY_H_

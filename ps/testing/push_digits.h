// Gradients by which a row tells which pushes it has.

#ifndef HAWSER_PS_TESTING_PUSH_DIGITS_H_
#define HAWSER_PS_TESTING_PUSH_DIGITS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace hawser::ps {

// Pushes have the numbers 0, 1, ..., each a digit of its own, in base 4, of one
// weight of a row: with learning rate 1, and weights that begin with 0, the
// digit counts how often the push was applied, up to 3.
inline constexpr int64_t kPushesPerWeight = 12;

// The gradient [width] of a push, which has a digit if it is below
// width * kPushesPerWeight.
inline std::vector<float> GradientOfPush(int64_t push, int64_t width) {
  std::vector<float> gradient(static_cast<size_t>(width));
  gradient[static_cast<size_t>(push / kPushesPerWeight)] =
      -static_cast<float>(int64_t{1} << (2 * (push % kPushesPerWeight)));
  return gradient;
}

// How often each push is in the row.
inline std::map<int64_t, int64_t> PushesInRow(std::span<const float> row) {
  std::map<int64_t, int64_t> pushes;
  for (size_t i = 0; i < row.size(); ++i) {
    auto digits = static_cast<int64_t>(row[i]);
    for (int64_t digit = 0; digits > 0; ++digit, digits /= 4) {
      if (digits % 4 == 0) continue;
      pushes[static_cast<int64_t>(i) * kPushesPerWeight + digit] = digits % 4;
    }
  }
  return pushes;
}

}  // namespace hawser::ps

#endif  // HAWSER_PS_TESTING_PUSH_DIGITS_H_

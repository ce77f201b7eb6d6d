#ifndef HAWSER_PS_STORAGE_ROWS_PUSH_RATE_H_
#define HAWSER_PS_STORAGE_ROWS_PUSH_RATE_H_

#include <cstdint>
#include <optional>

namespace hawser::ps {

// The learning rate of a push, before the schedules of its rows.
struct PushRate {
  // Finite and at least 0. Unset: each row takes that of its rule.
  std::optional<double> learning_rate = std::nullopt;
  // The step of the training, for schedules; at least 0. Unset: each row takes
  // the number of its earlier updates.
  std::optional<int64_t> step = std::nullopt;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_ROWS_PUSH_RATE_H_

// Options of the rows of a table, by key.

#ifndef HAWSER_PS_STORAGE_ROWS_ROW_OPTIONS_H_
#define HAWSER_PS_STORAGE_ROWS_ROW_OPTIONS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "optim/lr_schedule.h"
#include "optim/update_rule.h"
#include "ps/storage/rows/push_rate.h"
#include "ps/storage/table_spec.h"

namespace hawser::ps {

// How the rows of some keys are created and updated.
struct RowOptions {
  // Among those of the table.
  size_t index = 0;
  // The same object for options that differ only in the learning rate.
  std::shared_ptr<const optim::UpdateRule> rule = nullptr;
  // The base of the schedule.
  double learning_rate = 0;
  // Empty: the rate is the base.
  optim::LrSchedule schedule = nullptr;
  Initializer initializer = {};
};

// The options of a table, and of its key ranges. Immutable, hence thread-safe.
class RowOptionsByKey {
 public:
  // `spec` is normalized. kInvalidArgument: its rule is not registered in this
  // process.
  static absl::StatusOr<std::unique_ptr<const RowOptionsByKey>> Create(
      const TableSpec& spec);

  const RowOptions& of_table() const { return options_[0]; }
  bool has_ranges() const { return options_.size() > 1; }
  size_t size() const { return options_.size(); }

  const RowOptions& Of(uint64_t key) const {
    if (!has_ranges()) return options_[0];
    const auto next = std::upper_bound(firsts_.begin(), firsts_.end(), key);
    return options_[of_first_[static_cast<size_t>(next - firsts_.begin()) - 1]];
  }

  // Whether a rate depends on the step, and whether a rule or a schedule may
  // need the number of updates of its row.
  bool has_schedules() const;
  bool depends_on_updates() const;

 private:
  explicit RowOptionsByKey(const TableSpec& spec)
      : clocked_(spec.consistency.clocked()) {}

  const bool clocked_;
  // The first are those of the table, then those of the ranges.
  std::vector<RowOptions> options_;
  // The keys from firsts_[i] to the next have the options of_first_[i]. The
  // first one is 0.
  std::vector<uint64_t> firsts_;
  std::vector<uint32_t> of_first_;
};

// The learning rates of the rows of one push. `options` must outlive it.
// Thread-compatible.
class RowRates {
 public:
  RowRates(const RowOptionsByKey& options, const PushRate& push);

  // The rate of all rows; unset if they may differ.
  std::optional<double> uniform() const { return uniform_; }
  // The rate of a row with these options and so many earlier updates.
  double Of(const RowOptions& options, int64_t updates);

 private:
  // The rate that was computed last, and its step.
  struct Known {
    int64_t step = -1;
    double rate = 0;
  };

  const PushRate push_;
  std::optional<double> uniform_;
  // By RowOptions::index; empty if `uniform_` is set.
  std::vector<Known> known_;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_ROWS_ROW_OPTIONS_H_

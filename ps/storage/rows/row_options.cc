#include "ps/storage/rows/row_options.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "optim/lr_schedule.h"
#include "optim/make_update_rule.h"
#include "optim/rule_spec.h"
#include "optim/schedule_spec.h"
#include "optim/update_rule.h"
#include "ps/storage/rows/push_rate.h"
#include "ps/storage/table_spec.h"

namespace hawser::ps {
namespace {

// Without the learning rate, which Update does not take from the rule.
optim::RuleSpec WithoutRate(optim::RuleSpec rule) {
  std::erase_if(rule.options,
                [](const auto& option) { return option.first == "lr"; });
  return rule;
}

absl::StatusOr<RowOptions> MakeOptions(const optim::RuleSpec& rule,
                                       const optim::ScheduleSpec& schedule,
                                       const Initializer& initializer,
                                       const std::vector<RowOptions>& others) {
  RowOptions options{.index = others.size(), .initializer = initializer};
  ASSIGN_OR_RETURN(std::unique_ptr<optim::UpdateRule> made,
                   optim::MakeUpdateRule(rule));
  options.learning_rate = made->learning_rate();
  const auto same =
      std::find_if(others.begin(), others.end(), [&](const RowOptions& other) {
        return WithoutRate(other.rule->spec()) == WithoutRate(made->spec());
      });
  options.rule = same == others.end()
                     ? std::shared_ptr<const optim::UpdateRule>(std::move(made))
                     : same->rule;
  if (!schedule.is_constant()) {
    ASSIGN_OR_RETURN(options.schedule, optim::MakeLrSchedule(schedule));
  }
  return options;
}

// The rate of `options` at a step.
double RateAt(const RowOptions& options, const PushRate& push, int64_t step) {
  const double base = push.learning_rate.value_or(options.learning_rate);
  if (options.schedule == nullptr) return base;
  return *options.schedule(base, std::min(step, optim::ScheduleSpec::kMaxStep));
}

}  // namespace

absl::StatusOr<std::unique_ptr<const RowOptionsByKey>> RowOptionsByKey::Create(
    const TableSpec& spec) {
  std::unique_ptr<RowOptionsByKey> made(new RowOptionsByKey(spec));
  std::vector<RowOptions>& options = made->options_;
  options.reserve(spec.key_ranges.size() + 1);
  ASSIGN_OR_RETURN(RowOptions of_table, MakeOptions(spec.rule, spec.schedule,
                                                    spec.initializer, options));
  options.push_back(std::move(of_table));
  uint64_t next = 0;
  bool ended = false;
  const auto add = [&](uint64_t first, uint32_t index) {
    made->firsts_.push_back(first);
    made->of_first_.push_back(index);
  };
  for (const KeyRange& range : spec.key_ranges) {
    if (range.first > next) add(next, 0);
    add(range.first, static_cast<uint32_t>(options.size()));
    ended = range.last == UINT64_MAX;
    next = range.last + 1;
    ASSIGN_OR_RETURN(
        RowOptions of_range,
        MakeOptions(range.rule.value_or(spec.rule),
                    range.schedule.value_or(spec.schedule),
                    range.initializer.value_or(spec.initializer), options));
    options.push_back(std::move(of_range));
  }
  if (!ended) add(next, 0);
  return made;
}

bool RowOptionsByKey::has_schedules() const {
  return std::any_of(
      options_.begin(), options_.end(),
      [](const RowOptions& options) { return options.schedule != nullptr; });
}

bool RowOptionsByKey::depends_on_updates() const {
  // The pushes of a table with clocks have a step.
  if (has_schedules() && !clocked_) return true;
  return std::any_of(options_.begin(), options_.end(),
                     [](const RowOptions& options) {
                       return options.rule->depends_on_step();
                     });
}

RowRates::RowRates(const RowOptionsByKey& options, const PushRate& push)
    : push_(push) {
  const RowOptions& of_table = options.of_table();
  const bool by_key =
      options.has_ranges() &&
      (!push.learning_rate.has_value() || options.has_schedules());
  const bool by_row = options.has_schedules() && !push.step.has_value();
  if (by_key || by_row) {
    known_.resize(options.size());
  } else {
    uniform_ = RateAt(of_table, push, push.step.value_or(0));
  }
}

double RowRates::Of(const RowOptions& options, int64_t updates) {
  if (uniform_.has_value()) return *uniform_;
  const int64_t step = push_.step.value_or(updates);
  Known& known = known_[options.index];
  if (known.step != step) known = {step, RateAt(options, push_, step)};
  return known.rate;
}

}  // namespace hawser::ps

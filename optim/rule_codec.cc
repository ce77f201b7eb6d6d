#include "optim/rule_codec.h"

#include <algorithm>

#include "optim/rule_spec.h"
#include "optim/schedule_spec.h"
#include "proto/update_rule.pb.h"

namespace hawser::optim {

v1::OptimizerRule ToProto(const RuleSpec& rule) {
  v1::OptimizerRule proto;
  proto.set_name(rule.name);
  for (const auto& [name, value] : rule.options) {
    (*proto.mutable_options())[name] = value;
  }
  return proto;
}

RuleSpec FromProto(const v1::OptimizerRule& proto) {
  RuleSpec rule;
  rule.name = proto.name();
  for (const auto& [name, value] : proto.options()) {
    rule.options.emplace_back(name, value);
  }
  std::sort(rule.options.begin(), rule.options.end());
  return rule;
}

v1::LearningRateSchedule ToProto(const ScheduleSpec& schedule) {
  v1::LearningRateSchedule proto;
  for (const ScheduleSpec::Phase& phase : schedule.phases) {
    v1::LearningRateSchedule::Phase& added = *proto.add_phases();
    *added.mutable_schedule() = ToProto(phase.schedule);
    added.set_first_step(phase.first_step);
  }
  return proto;
}

ScheduleSpec FromProto(const v1::LearningRateSchedule& proto) {
  ScheduleSpec schedule;
  for (const v1::LearningRateSchedule::Phase& phase : proto.phases()) {
    schedule.phases.push_back(
        {FromProto(phase.schedule()), phase.first_step()});
  }
  return schedule;
}

}  // namespace hawser::optim

#ifndef HAWSER_OPTIM_RULE_CODEC_H_
#define HAWSER_OPTIM_RULE_CODEC_H_

#include "optim/rule_spec.h"
#include "optim/schedule_spec.h"
#include "proto/update_rule.pb.h"

namespace hawser::optim {

// Conversions between a rule and its message. FromProto sorts the options by
// name, and checks nothing: MakeUpdateRule does.
v1::OptimizerRule ToProto(const RuleSpec& rule);
RuleSpec FromProto(const v1::OptimizerRule& proto);

// The same for schedules, which MakeLrSchedule checks.
v1::LearningRateSchedule ToProto(const ScheduleSpec& schedule);
ScheduleSpec FromProto(const v1::LearningRateSchedule& proto);

}  // namespace hawser::optim

#endif  // HAWSER_OPTIM_RULE_CODEC_H_

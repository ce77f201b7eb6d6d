#ifndef HAWSER_OPTIM_RULE_CODEC_H_
#define HAWSER_OPTIM_RULE_CODEC_H_

#include "optim/rule_spec.h"
#include "proto/update_rule.pb.h"

namespace hawser::optim {

// Conversions between a rule and its message. FromProto checks nothing:
// MakeUpdateRule does.
v1::OptimizerRule ToProto(const RuleSpec& rule);
RuleSpec FromProto(const v1::OptimizerRule& proto);

}  // namespace hawser::optim

#endif  // HAWSER_OPTIM_RULE_CODEC_H_

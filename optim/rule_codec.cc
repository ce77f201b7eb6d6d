#include "optim/rule_codec.h"

#include "optim/rule_spec.h"
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
  for (const auto& [name, value] : proto.options()) rule.Set(name, value);
  return rule;
}

}  // namespace hawser::optim

#include "optim/make_update_rule.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "optim/adadelta.h"
#include "optim/adagrad.h"
#include "optim/adam.h"
#include "optim/adamax.h"
#include "optim/ftrl.h"
#include "optim/lamb.h"
#include "optim/rmsprop.h"
#include "optim/row_wise_adagrad.h"
#include "optim/rprop.h"
#include "optim/sgd.h"
#include "optim/sparse_adam.h"

namespace hawser::optim {
namespace {

struct Maker {
  std::string_view name;
  absl::StatusOr<std::unique_ptr<UpdateRule>> (*make)(const RuleSpec&);
};

constexpr Maker kMakers[] = {
    {"SGD", MakeSgd},           {"Adam", MakeAdam},
    {"AdamW", MakeAdamW},       {"SparseAdam", MakeSparseAdam},
    {"Adamax", MakeAdamax},     {"Adagrad", MakeAdagrad},
    {"Adadelta", MakeAdadelta}, {"RMSprop", MakeRmsProp},
    {"Rprop", MakeRprop},       {"FTRL", MakeFtrl},
    {"LAMB", MakeLamb},         {"RowWiseAdagrad", MakeRowWiseAdagrad},
};

}  // namespace

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeUpdateRule(
    const RuleSpec& spec) {
  std::vector<std::string> names;
  for (const Maker& maker : kMakers) {
    if (maker.name == spec.name) return maker.make(spec);
    names.emplace_back(maker.name);
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown update rule \"",
                                                 spec.name, "\"; use one of ",
                                                 absl::StrJoin(names, ", ")));
}

}  // namespace hawser::optim

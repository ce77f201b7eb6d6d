#include "optim/ftrl.h"

#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "optim/internal/option_table.h"
#include "optim/kernels/update_kernels.h"
#include "optim/update_rule.h"

namespace hawser::optim {
namespace {

using internal::CheckOption;

constexpr internal::OptionField<FtrlOptions> kTable[] = {
    {"lr", &FtrlOptions::lr},
    {"beta", &FtrlOptions::beta},
    {"l1", &FtrlOptions::l1},
    {"l2", &FtrlOptions::l2},
    {"maximize", &FtrlOptions::maximize},
};

class FtrlRule final : public UpdateRule {
 public:
  explicit FtrlRule(const FtrlOptions& options)
      : UpdateRule(Ftrl(options), {{"z", 0}, {"n", 0}},
                   GradientKind::kDenseAndRows),
        options_(options) {}

  void Update(std::span<const UpdateSpan> spans) const override {
    internal::FtrlUpdate(options_, spans);
  }
  bool depends_on_step() const override { return false; }

 private:
  const FtrlOptions options_;
};

}  // namespace

RuleSpec Ftrl(const FtrlOptions& options) {
  return internal::WriteOptions<FtrlOptions>("FTRL", options, kTable);
}

absl::StatusOr<std::unique_ptr<UpdateRule>> MakeFtrl(const RuleSpec& spec) {
  ASSIGN_OR_RETURN(const FtrlOptions o,
                   internal::ReadOptions<FtrlOptions>(spec, kTable));
  RETURN_IF_ERROR(CheckOption("FTRL", "lr", o.lr, {.low_included = false}));
  RETURN_IF_ERROR(CheckOption("FTRL", "beta", o.beta, {}));
  RETURN_IF_ERROR(CheckOption("FTRL", "l1", o.l1, {}));
  RETURN_IF_ERROR(CheckOption("FTRL", "l2", o.l2, {}));
  return std::make_unique<FtrlRule>(o);
}

}  // namespace hawser::optim

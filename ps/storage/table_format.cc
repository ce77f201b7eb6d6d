#include "ps/storage/table_format.h"

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/status_macros.h"
#include "optim/make_update_rule.h"
#include "optim/update_rule.h"
#include "ps/storage/retention/row_use.h"
#include "ps/storage/table_spec.h"

namespace hawser::ps {

absl::StatusOr<std::shared_ptr<const TableFormat>> TableFormat::Create(
    const TableSpec& spec) {
  ASSIGN_OR_RETURN(const TableSpec normal, NormalizeTableSpec(spec));
  ASSIGN_OR_RETURN(std::unique_ptr<optim::UpdateRule> rule,
                   optim::MakeUpdateRule(normal.rule));
  return std::shared_ptr<const TableFormat>(
      new TableFormat(normal, std::move(rule)));
}

TableFormat::TableFormat(const TableSpec& spec,
                         std::unique_ptr<optim::UpdateRule> rule)
    : spec_(spec),
      rule_(std::move(rule)),
      layout_(static_cast<size_t>(spec.width), spec.dtype, *rule_,
              spec.retention.active() ||
                  spec.storage.kind != TableStorage::Kind::kMemory),
      ttl_seconds_(spec.retention.ttl == absl::InfiniteDuration()
                       ? RowUse::kMaxAge + 1
                       : absl::ToInt64Seconds(spec.retention.ttl)) {}

}  // namespace hawser::ps

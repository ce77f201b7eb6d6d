#include "ps/storage/table_format.h"

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/status_macros.h"
#include "ps/storage/retention/row_use.h"
#include "ps/storage/rows/row_options.h"
#include "ps/storage/table_spec.h"

namespace hawser::ps {

absl::StatusOr<std::shared_ptr<const TableFormat>> TableFormat::Create(
    const TableSpec& spec) {
  ASSIGN_OR_RETURN(const TableSpec normal, NormalizeTableSpec(spec));
  absl::StatusOr<std::unique_ptr<const RowOptionsByKey>> options =
      RowOptionsByKey::Create(normal);
  if (!options.ok()) {
    return absl::Status(options.status().code(),
                        absl::StrCat("table \"", spec.name, "\": ",
                                     std::string(options.status().message())));
  }
  return std::shared_ptr<const TableFormat>(
      new TableFormat(normal, *std::move(options)));
}

TableFormat::TableFormat(const TableSpec& spec,
                         std::unique_ptr<const RowOptionsByKey> options)
    : spec_(spec),
      options_(std::move(options)),
      layout_(static_cast<size_t>(spec.width), spec.dtype,
              *options_->of_table().rule, options_->depends_on_updates(),
              spec.retention.active() ||
                  spec.storage.kind != TableStorage::Kind::kMemory),
      ttl_seconds_(spec.retention.ttl == absl::InfiniteDuration()
                       ? RowUse::kMaxAge + 1
                       : absl::ToInt64Seconds(spec.retention.ttl)) {}

}  // namespace hawser::ps

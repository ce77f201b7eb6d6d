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
  const RowLayout layout(
      static_cast<size_t>(normal.width), normal.dtype,
      *(*options)->of_table().rule, (*options)->depends_on_updates(),
      normal.retention.active() ||
          normal.storage.kind != TableStorage::Kind::kMemory);
  return std::shared_ptr<const TableFormat>(
      new TableFormat(normal, *std::move(options), layout));
}

std::shared_ptr<const TableFormat> TableFormat::OfUses(
    const TableFormat& rows) {
  return std::shared_ptr<const TableFormat>(
      new TableFormat(rows.spec_, rows.options_, RowLayout::OfUses()));
}

TableFormat::TableFormat(const TableSpec& spec,
                         std::shared_ptr<const RowOptionsByKey> options,
                         const RowLayout& layout)
    : spec_(spec),
      options_(std::move(options)),
      layout_(layout),
      ttl_seconds_(spec.retention.ttl == absl::InfiniteDuration()
                       ? RowUse::kMaxAge + 1
                       : absl::ToInt64Seconds(spec.retention.ttl)) {}

}  // namespace hawser::ps

// The constant parts of a table, shared by its partitions.

#ifndef HAWSER_PS_STORAGE_TABLE_FORMAT_H_
#define HAWSER_PS_STORAGE_TABLE_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "ps/storage/retention/row_use.h"
#include "ps/storage/row_layout.h"
#include "ps/storage/rows/row_options.h"
#include "ps/storage/table_spec.h"

namespace hawser::ps {

// A normalized TableSpec with the options and the layout of its rows.
// Immutable.
class TableFormat {
 public:
  // Errors of NormalizeTableSpec; kInvalidArgument: the rule is not registered
  // in this process.
  static absl::StatusOr<std::shared_ptr<const TableFormat>> Create(
      const TableSpec& spec);
  // The format of the uses of rows, without the rows.
  static std::shared_ptr<const TableFormat> OfUses(const TableFormat& rows);

  const TableSpec& spec() const { return spec_; }
  const RowOptionsByKey& options() const { return *options_; }
  const RowLayout& layout() const { return layout_; }

  // Whether rows have a TTL, and whether that of `row` is over at `now`, in
  // seconds of TableTime.
  bool rows_expire() const { return ttl_seconds_ <= RowUse::kMaxAge; }
  bool HasExpired(const std::byte* row, int64_t now) const {
    return rows_expire() && HasExpired(layout_.use(row), now);
  }
  bool HasExpired(RowUse use, int64_t now) const {
    return rows_expire() && use.Age(now) > ttl_seconds_;
  }

 private:
  TableFormat(const TableSpec& spec,
              std::shared_ptr<const RowOptionsByKey> options,
              const RowLayout& layout);

  const TableSpec spec_;
  const std::shared_ptr<const RowOptionsByKey> options_;
  const RowLayout layout_;
  // Above RowUse::kMaxAge if rows stay.
  const int64_t ttl_seconds_;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_TABLE_FORMAT_H_

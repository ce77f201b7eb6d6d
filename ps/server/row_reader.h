// Rows for the reply to a request.

#ifndef HAWSER_PS_SERVER_ROW_READER_H_
#define HAWSER_PS_SERVER_ROW_READER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ps/read/read_function.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_partition.h"
#include "rpc/functions/method.h"

namespace hawser::ps {

// Reads the weights of rows, or the results of a read function for them.
//
// Thread-compatible. The table must outlive it.
class RowReader {
 public:
  // `function` is the name of a read function, whose arguments are the tensors
  // of `call` from number `first` on, which are then read; or it is empty, and
  // there are no such tensors.
  //
  // Errors of MakeReadFunction; kInvalidArgument: an argument is not f32, or
  // there are too many; kResourceExhausted: they are too large.
  static absl::StatusOr<RowReader> Create(SparseTable& table,
                                          const std::string& function,
                                          const rpc::MethodCall& call,
                                          size_t first);

  // Numbers for each key.
  int64_t width() const {
    return function_.has_value() ? function_->width : table_.spec().width;
  }

  // Reads those of `keys` to `rows`, [keys, width()]. Errors of
  // SparseTable::Pull.
  absl::Status Read(std::span<const uint64_t> keys, MissingRows missing,
                    std::span<float> rows) const;

 private:
  RowReader(SparseTable& table, std::optional<ReadFunction> function)
      : table_(table), function_(std::move(function)) {}

  // Calls the function for `keys`, whose whole rows are in `whole`.
  void Call(std::span<const uint64_t> keys, std::span<std::byte> whole,
            std::span<float> results) const;

  SparseTable& table_;
  const std::optional<ReadFunction> function_;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_SERVER_ROW_READER_H_

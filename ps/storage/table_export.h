// Rows of a table as tensors, for other programs.

#ifndef HAWSER_PS_STORAGE_TABLE_EXPORT_H_
#define HAWSER_PS_STORAGE_TABLE_EXPORT_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ps/storage/sparse_table.h"
#include "tensor/tensor.h"

namespace hawser::ps {

// Named tensors, on the CPU.
using NamedTensors = std::vector<std::pair<std::string, tensor::Tensor>>;

// Returns the weights of `table`, which has all shards and does not change
// meanwhile. Takes the memory of the weights in f32 once more.
//
//   sparse table  "keys", i64[rows], ascending as numbers without sign, and
//                 "weights", f32[rows, width].
//   dense table   its tensors, f32. A part that was never assigned or pushed
//                 is 0.
//
// kFailedPrecondition  a shard is missing.
// kDataLoss            a dense table has a row that is no part of its tensors.
// Errors of RowDisk.
absl::StatusOr<NamedTensors> ExportTable(SparseTable& table);

// Writes tensors to the file `path`, if it ends in ".safetensors", and
// otherwise each to the file NAME.npy in the new directory `path`; '/' in a
// name becomes '+'. What exists at `path` is not replaced: kAlreadyExists.
// Errors of the file system, which name the file.
absl::Status WriteTensors(const NamedTensors& tensors, const std::string& path);

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_TABLE_EXPORT_H_

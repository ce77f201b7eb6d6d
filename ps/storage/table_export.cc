#include "ps/storage/table_export.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "async/status_macros.h"
#include "ps/storage/key_hash.h"
#include "ps/storage/snapshot/partition_copy.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_partition.h"
#include "ps/storage/table_spec.h"
#include "tensor/dtype.h"
#include "tensor/io/npy.h"
#include "tensor/io/safetensors.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

using ::hawser::tensor::Tensor;

// The keys of the rows, in memory and on a disk, ascending.
absl::StatusOr<std::vector<uint64_t>> KeysOf(const SparseTable& table) {
  std::vector<uint64_t> keys;
  keys.reserve(static_cast<size_t>(table.num_rows()));
  PartitionCopy copy;
  for (size_t p = 0; p < table.num_partitions(); ++p) {
    TablePartition& partition = table.partition(p);
    RETURN_IF_ERROR(partition.Export(copy));
    copy.rows.ForEach(
        [&](uint64_t key, const std::byte*) { keys.push_back(key); });
    RETURN_IF_ERROR(copy.ForEachRowOnDisk(table.format().layout(),
                                          [&](uint64_t key, const std::byte*) {
                                            keys.push_back(key);
                                            return absl::OkStatus();
                                          }));
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

absl::StatusOr<Tensor> WeightsOf(std::span<const uint64_t> keys,
                                 SparseTable& table) {
  ASSIGN_OR_RETURN(Tensor weights,
                   Tensor::TryEmpty({static_cast<int64_t>(keys.size()),
                                     table.spec().width}));
  RETURN_IF_ERROR(table.Pull(
      keys,
      {weights.data<float>(), static_cast<size_t>(weights.num_elements())},
      MissingRows::kKeep));
  return weights;
}

// The chunks of a dense table in one vector. Chunk i of n has the hash
// (i + 1/2) * 2^64 / n.
absl::StatusOr<Tensor> Join(std::span<const uint64_t> keys,
                            const Tensor& weights, int64_t elements) {
  const int64_t width = weights.dim(1);
  const int64_t chunks = (elements + width - 1) / width;
  Tensor all = Tensor::Zeros({chunks * width});
  for (size_t i = 0; i < keys.size(); ++i) {
    const int64_t chunk =
        SplitHash(HashKey(keys[i]), static_cast<uint32_t>(chunks)).part;
    if (KeyOfChunk(chunk, chunks) != keys[i]) {
      return absl::DataLossError(absl::StrCat(
          "row ", keys[i], " is no part of the tensors of its table"));
    }
    std::memcpy(all.data<float>() + chunk * width,
                weights.data<float>() + static_cast<int64_t>(i) * width,
                static_cast<size_t>(width) * sizeof(float));
  }
  return all;
}

absl::StatusOr<NamedTensors> ExportDense(std::span<const uint64_t> keys,
                                         const Tensor& weights,
                                         const TableSpec& spec) {
  int64_t elements = 0;
  for (const DenseTensor& tensor : spec.tensors) {
    elements += tensor.shape.num_elements();
  }
  ASSIGN_OR_RETURN(const Tensor all, Join(keys, weights, elements));
  NamedTensors tensors;
  int64_t begin = 0;
  for (const DenseTensor& tensor : spec.tensors) {
    const int64_t count = tensor.shape.num_elements();
    ASSIGN_OR_RETURN(const Tensor part, all.Narrow(0, begin, count));
    ASSIGN_OR_RETURN(Tensor shaped, part.Reshape(tensor.shape));
    tensors.emplace_back(tensor.name, std::move(shaped));
    begin += count;
  }
  return tensors;
}

}  // namespace

absl::StatusOr<NamedTensors> ExportTable(SparseTable& table) {
  if (table.shards().count != table.spec().num_shards) {
    return absl::FailedPreconditionError(absl::StrCat(
        "table \"", table.spec().name, "\" has ", table.shards().count, " of ",
        table.spec().num_shards, " shards here"));
  }
  ASSIGN_OR_RETURN(const std::vector<uint64_t> keys, KeysOf(table));
  ASSIGN_OR_RETURN(Tensor weights, WeightsOf(keys, table));
  if (!table.spec().tensors.empty()) {
    return ExportDense(keys, weights, table.spec());
  }
  Tensor numbers = Tensor::Empty({static_cast<int64_t>(keys.size())},
                                 {.dtype = tensor::DType::kI64});
  std::copy_n(keys.data(), keys.size(),
              reinterpret_cast<uint64_t*>(numbers.data<int64_t>()));
  return NamedTensors{{"keys", std::move(numbers)},
                      {"weights", std::move(weights)}};
}

absl::Status WriteTensors(const NamedTensors& tensors,
                          const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(path, error)) {
    return absl::AlreadyExistsError(
        absl::StrCat(path, " exists: choose another name"));
  }
  if (absl::EndsWith(path, ".safetensors")) {
    return tensor::SaveSafetensors(path, {.tensors = tensors, .metadata = {}});
  }
  if (!std::filesystem::create_directory(path, error)) {
    return absl::UnavailableError(absl::StrCat("cannot create the directory ",
                                               path, ": ", error.message()));
  }
  for (const auto& [name, tensor] : tensors) {
    RETURN_IF_ERROR(tensor::WriteNpy(
        absl::StrCat(path, "/", absl::StrReplaceAll(name, {{"/", "+"}}),
                     ".npy"),
        tensor));
  }
  return absl::OkStatus();
}

}  // namespace hawser::ps

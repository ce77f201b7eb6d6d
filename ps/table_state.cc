#include "ps/table_state.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ps/ordered_keys.h"
#include "ps/row_encoding.h"
#include "ps/storage/key_hash.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_spec.h"
#include "ps/table_arguments.h"
#include "ps/table_client.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::ps {

Table::State::State(std::shared_ptr<TableClient> client, const TableSpec& spec,
                    std::vector<std::string> servers)
    : client_(std::move(client)), spec_(spec), servers_(std::move(servers)) {
  const auto count = static_cast<int64_t>(servers_.size());
  for (int64_t i = 0; i < count; ++i) {
    const ShardRange shards = *ShardsOf({i, count}, spec_.num_shards);
    shard_ends_.push_back(shards.first + shards.count);
  }
}

std::vector<Table::State::Part> Table::State::Split(
    const OrderedKeys& ordered) const {
  std::vector<Part> parts;
  size_t begin = 0;
  for (size_t i = 0; i < servers_.size(); ++i) {
    const size_t end = ordered.CountBelow(shard_ends_[i], spec_.num_shards);
    if (end > begin) parts.push_back({&servers_[i], begin, end});
    begin = end;
  }
  return parts;
}

std::vector<Table::State::BagPart> Table::State::SplitBags(
    const Tensor& keys) const {
  const std::span<const uint64_t> numbers = Numbers(keys);
  const auto bag_size = static_cast<size_t>(std::max<int64_t>(keys.dim(-1), 1));
  std::vector<std::vector<int64_t>> part_keys(servers_.size());
  std::vector<std::vector<int32_t>> part_bags(servers_.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto shard = static_cast<int64_t>(
        SplitHash(HashKey(numbers[i]), static_cast<uint32_t>(spec_.num_shards))
            .part);
    const size_t server =
        servers_.size() == 1
            ? 0
            : static_cast<size_t>(std::upper_bound(shard_ends_.begin(),
                                                   shard_ends_.end(), shard) -
                                  shard_ends_.begin());
    part_keys[server].push_back(static_cast<int64_t>(numbers[i]));
    part_bags[server].push_back(static_cast<int32_t>(i / bag_size));
  }
  std::vector<BagPart> parts;
  for (size_t i = 0; i < servers_.size(); ++i) {
    if (part_keys[i].empty()) continue;
    const auto count = static_cast<int64_t>(part_keys[i].size());
    parts.push_back({&servers_[i], Tensor::FromVector(part_keys[i], {count}),
                     Tensor::FromVector(part_bags[i], {count})});
  }
  return parts;
}

v1::RowEncoding ToProto(RowEncoding encoding) {
  switch (encoding) {
    case RowEncoding::kF32:
      return v1::ROWS_F32;
    case RowEncoding::kF16:
      return v1::ROWS_F16;
    case RowEncoding::kBF16:
      return v1::ROWS_BF16;
    case RowEncoding::kI8:
      return v1::ROWS_I8;
    case RowEncoding::kNonZero:
      return v1::ROWS_F32;
  }
  return v1::ROWS_F32;
}

absl::StatusOr<Tensor> RowsOfReply(std::vector<Tensor> tensors,
                                   const tensor::Shape& shape) {
  absl::StatusOr<Tensor> rows = DecodeRows(std::move(tensors), shape);
  if (rows.ok()) return rows;
  return absl::InternalError(absl::StrCat("a server has sent a wrong reply: ",
                                          rows.status().message()));
}

}  // namespace hawser::ps

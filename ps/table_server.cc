#include "ps/table_server.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "proto/ps.pb.h"
#include "ps/ordered_keys.h"
#include "ps/storage/logged_table.h"
#include "ps/storage/push_log.h"
#include "ps/storage/recovery_directory.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_codec.h"
#include "ps/storage/table_file.h"
#include "ps/storage/table_partition.h"
#include "ps/storage/table_spec.h"
#include "rpc/functions/method.h"
#include "rpc/identity/worker_info.h"
#include "rpc/wire/lazy_tensor.h"
#include "tensor/dtype.h"
#include "tensor/half.h"
#include "tensor/half_convert.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

constexpr uint64_t kMaxSequence = uint64_t{1} << 62;
// Of rows that are read to be added. A part of a second-level cache.
constexpr size_t kBlockBytes = size_t{256} << 10;
// Enough keys for each partition to overlap its loads from memory.
constexpr size_t kMinBlockKeys = 1024;

void AddRow(const float* row, size_t width, float* sum) {
  for (size_t i = 0; i < width; ++i) sum[i] += row[i];
}

std::string Prefix(const SparseTable& table) {
  return absl::StrCat("table \"", table.spec().name, "\": ");
}

absl::Status CheckTensors(const SparseTable& table, const rpc::MethodCall& call,
                          size_t wanted) {
  if (call.tensors.size() != wanted) {
    return absl::InvalidArgumentError(
        absl::StrCat(Prefix(table), "the request has ", call.tensors.size(),
                     " tensors; it needs ", wanted));
  }
  const rpc::LazyTensor& keys = call.tensors[0];
  if (keys.dtype() != tensor::DType::kI64 || keys.shape().rank() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        Prefix(table), "keys must be i64[n], not ",
        std::string(tensor::DTypeName(keys.dtype())), keys.shape().ToString()));
  }
  return absl::OkStatus();
}

absl::Status CheckGradients(const SparseTable& table, int64_t num_keys,
                            const rpc::LazyTensor& gradients) {
  const tensor::DType dtype = gradients.dtype();
  const tensor::Shape expected({num_keys, table.spec().width});
  if ((dtype == tensor::DType::kF32 || dtype == tensor::DType::kF16 ||
       dtype == tensor::DType::kBF16) &&
      gradients.shape() == expected) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      Prefix(table), "gradients must be f32, f16 or bf16 ", expected.ToString(),
      ", not ", std::string(tensor::DTypeName(dtype)),
      gradients.shape().ToString()));
}

absl::StatusOr<std::vector<uint64_t>> ReadKeys(const rpc::LazyTensor& tensor) {
  std::vector<uint64_t> keys(tensor.bytes() / sizeof(uint64_t));
  RETURN_IF_ERROR(tensor.ReadInto(std::as_writable_bytes(std::span(keys))));
  return keys;
}

// The bags of the keys, each below `num_bags`.
absl::StatusOr<std::vector<int32_t>> ReadBags(const SparseTable& table,
                                              const rpc::LazyTensor& keys,
                                              const rpc::LazyTensor& tensor,
                                              int64_t num_bags) {
  if (tensor.dtype() != tensor::DType::kI32 || tensor.shape() != keys.shape()) {
    return absl::InvalidArgumentError(
        absl::StrCat(Prefix(table), "bags must be i32", keys.shape().ToString(),
                     ", not ", std::string(tensor::DTypeName(tensor.dtype())),
                     tensor.shape().ToString()));
  }
  std::vector<int32_t> bags(tensor.bytes() / sizeof(int32_t));
  RETURN_IF_ERROR(tensor.ReadInto(std::as_writable_bytes(std::span(bags))));
  for (int32_t bag : bags) {
    if (bag >= 0 && bag < num_bags) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(Prefix(table), "bag ", bag, " is not below ", num_bags));
  }
  return bags;
}

// Reads rows of gradients in f32, through memory that is used again.
class GradientReader {
 public:
  GradientReader(const rpc::LazyTensor& tensor, size_t width)
      : tensor_(tensor), width_(width) {}

  // Valid until the next call.
  absl::StatusOr<const float*> Read(size_t begin, size_t end) {
    const size_t count = (end - begin) * width_;
    wide_.resize(count);
    const size_t item = tensor::ItemBytes(tensor_.dtype());
    if (tensor_.dtype() == tensor::DType::kF32) {
      RETURN_IF_ERROR(tensor_.ReadInto(
          begin * width_ * item, std::as_writable_bytes(std::span(wide_))));
      return wide_.data();
    }
    narrow_.resize(count);
    RETURN_IF_ERROR(tensor_.ReadInto(
        begin * width_ * item, std::as_writable_bytes(std::span(narrow_))));
    const auto elements = static_cast<int64_t>(count);
    if (tensor_.dtype() == tensor::DType::kF16) {
      tensor::HalfToFloat(reinterpret_cast<const tensor::Half*>(narrow_.data()),
                          wide_.data(), elements);
    } else {
      tensor::BFloat16ToFloat(
          reinterpret_cast<const tensor::BFloat16*>(narrow_.data()),
          wide_.data(), elements);
    }
    return wide_.data();
  }

 private:
  const rpc::LazyTensor& tensor_;
  const size_t width_;
  std::vector<float> wide_;
  std::vector<uint16_t> narrow_;
};

absl::Status CheckSequence(const SparseTable& table,
                           const rpc::MethodCall& call, uint64_t sequence) {
  if (call.peer.incarnation == rpc::Incarnation{}) {
    return absl::InvalidArgumentError(
        absl::StrCat(Prefix(table),
                     "a push needs the incarnation of its sender in the "
                     "header of the request: draw a random one"));
  }
  if (sequence > 0 && sequence <= kMaxSequence) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      Prefix(table), "pushes count from 1 to 2^62; this one is ", sequence));
}

// Of a PushRequest or PushSumsRequest.
template <class Request>
absl::StatusOr<double> LearningRate(const SparseTable& table,
                                    const Request& request) {
  if (!request.has_learning_rate()) {
    return table.format().rule().learning_rate();
  }
  if (!std::isfinite(request.learning_rate()) || request.learning_rate() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        Prefix(table), "the learning rate must be at least 0, not ",
        request.learning_rate()));
  }
  return request.learning_rate();
}

}  // namespace

absl::StatusOr<bool> TableServer::Exists(const TableSpec& spec,
                                         ShardRange shards) const {
  const async::MutexLock lock(&mutex_);
  const auto found = tables_.find(spec.name);
  if (found == tables_.end()) {
    RETURN_IF_ERROR(CheckNumberOfTables());
    return false;
  }
  const SparseTable& table = found->second->table();
  if (table.spec() != spec) {
    return absl::AlreadyExistsError(absl::StrCat(
        "table \"", spec.name, "\" exists with another description: {",
        ToProto(table.spec()).ShortDebugString(), "}, not {",
        ToProto(spec).ShortDebugString(), "}"));
  }
  if (table.shards() != shards) {
    return absl::AlreadyExistsError(absl::StrCat(
        "table \"", spec.name, "\" exists with other shards here: ",
        table.shards().count, " from ", table.shards().first, " on, not ",
        shards.count, " from ", shards.first, " on"));
  }
  return true;
}

absl::Status TableServer::Create(const v1::CreateTableRequest& request) {
  ASSIGN_OR_RETURN(const TableSpec spec, FromProto(request.table()));
  const ShardRange shards = FromProto(request.shards());
  ASSIGN_OR_RETURN(bool exists, Exists(spec, shards));
  if (exists) return absl::OkStatus();
  const async::MutexLock adding(&adding_);
  ASSIGN_OR_RETURN(exists, Exists(spec, shards));
  if (exists) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::unique_ptr<SparseTable> rows,
                   SparseTable::Create(
                       spec, {.shards = shards, .max_rows = limits_.max_rows}));
  return Add(std::move(rows));
}

absl::Status TableServer::Add(std::unique_ptr<SparseTable> rows) {
  const std::string name = rows->spec().name;
  // Writes files.
  ASSIGN_OR_RETURN(
      std::shared_ptr<LoggedTable> table,
      LoggedTable::Create(std::move(rows), recovery_.get(), logging_));
  const async::MutexLock lock(&mutex_);
  tables_[name] = std::move(table);
  return absl::OkStatus();
}

absl::Status TableServer::Recover(const std::string& worker) {
  if (logging_ == PushLogging::kOff) return absl::OkStatus();
  if (directory_.empty()) {
    return absl::InvalidArgumentError(
        "TableServiceOptions::logging needs a snapshot_directory");
  }
  recovery_ = std::make_unique<RecoveryDirectory>(
      absl::StrCat(directory_, "/.log/", worker));
  ASSIGN_OR_RETURN(std::vector<std::shared_ptr<LoggedTable>> tables,
                   LoggedTable::Recover(*recovery_, logging_));
  const async::MutexLock lock(&mutex_);
  for (std::shared_ptr<LoggedTable>& table : tables) {
    const std::string name = table->table().spec().name;
    tables_[name] = std::move(table);
  }
  return absl::OkStatus();
}

absl::Status TableServer::CheckNumberOfTables() const {
  if (static_cast<int64_t>(tables_.size()) < limits_.max_tables) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "this server has ", limits_.max_tables, " tables, which is its limit"));
}

absl::StatusOr<std::shared_ptr<LoggedTable>> TableServer::Find(
    const std::string& name) const {
  const async::MutexLock lock(&mutex_);
  const auto found = tables_.find(name);
  if (found != tables_.end()) return found->second;
  return absl::NotFoundError(absl::StrCat("this server has no table \"", name,
                                          "\"; create it on all its servers"));
}

absl::StatusOr<v1::DescribeTableReply> TableServer::Describe(
    const v1::DescribeTableRequest& request) const {
  ASSIGN_OR_RETURN(const std::shared_ptr<LoggedTable> found,
                   Find(request.table()));
  SparseTable* const table = &found->table();
  v1::DescribeTableReply reply;
  *reply.mutable_table() = ToProto(table->spec());
  *reply.mutable_shards() = ToProto(table->shards());
  reply.set_num_rows(table->num_rows());
  reply.set_num_bytes(static_cast<int64_t>(table->bytes()));
  return reply;
}

absl::Status TableServer::CheckLimits(const SparseTable& table,
                                      const rpc::LazyTensor& keys,
                                      int64_t num_rows) const {
  const int64_t count = keys.shape()[0];
  if (count > limits_.max_keys) {
    return absl::ResourceExhaustedError(
        absl::StrCat(Prefix(table), "a request has at most ", limits_.max_keys,
                     " keys, not ", count, ": split it"));
  }
  const int64_t row_bytes =
      table.spec().width * static_cast<int64_t>(sizeof(float));
  if (num_rows > limits_.max_row_bytes / row_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(Prefix(table), "the rows of a request have at most ",
                     limits_.max_row_bytes, " bytes, not ", num_rows,
                     " rows of ", row_bytes, ": split it"));
  }
  return absl::OkStatus();
}

absl::StatusOr<rpc::Message<v1::PullReply>> TableServer::Pull(
    const rpc::MethodCall& call, const v1::PullRequest& request) {
  ASSIGN_OR_RETURN(const std::shared_ptr<LoggedTable> found,
                   Find(request.table()));
  SparseTable* const table = &found->table();
  RETURN_IF_ERROR(CheckTensors(*table, call, 1));
  RETURN_IF_ERROR(
      CheckLimits(*table, call.tensors[0], call.tensors[0].shape()[0]));
  ASSIGN_OR_RETURN(const std::vector<uint64_t> keys, ReadKeys(call.tensors[0]));
  ASSIGN_OR_RETURN(tensor::Tensor rows,
                   tensor::Tensor::TryEmpty({static_cast<int64_t>(keys.size()),
                                             table->spec().width}));
  RETURN_IF_ERROR(table->Pull(
      keys, {rows.data<float>(), static_cast<size_t>(rows.num_elements())},
      request.keep_missing() ? MissingRows::kKeep : MissingRows::kCreate));
  rpc::Message<v1::PullReply> reply;
  reply.tensors.push_back(std::move(rows));
  return reply;
}

absl::Status TableServer::Push(const rpc::MethodCall& call,
                               const v1::PushRequest& request) {
  ASSIGN_OR_RETURN(const std::shared_ptr<LoggedTable> found,
                   Find(request.table()));
  SparseTable* const table = &found->table();
  RETURN_IF_ERROR(CheckTensors(*table, call, 2));
  RETURN_IF_ERROR(
      CheckLimits(*table, call.tensors[0], call.tensors[0].shape()[0]));
  RETURN_IF_ERROR(
      CheckGradients(*table, call.tensors[0].shape()[0], call.tensors[1]));
  RETURN_IF_ERROR(CheckSequence(*table, call, request.sequence()));
  ASSIGN_OR_RETURN(const double learning_rate, LearningRate(*table, request));
  ASSIGN_OR_RETURN(const std::vector<uint64_t> keys, ReadKeys(call.tensors[0]));
  ASSIGN_OR_RETURN(const std::vector<PartitionRange> ranges,
                   table->SplitOrdered(keys));
  const PushId id{call.peer.incarnation, request.sequence()};
  GradientReader gradients(call.tensors[1],
                           static_cast<size_t>(table->spec().width));
  if (found->is_logged()) {
    ASSIGN_OR_RETURN(const float* const rows, gradients.Read(0, keys.size()));
    const std::span all(rows, keys.size() * table->spec().width);
    return found->Push({id, learning_rate, keys, all}, ranges);
  }
  for (const PartitionRange& range : ranges) {
    ASSIGN_OR_RETURN(const float* const rows,
                     gradients.Read(range.begin, range.end));
    RETURN_IF_ERROR(
        range.partition->Push({&keys[range.begin], range.end - range.begin},
                              rows, learning_rate, id));
  }
  return absl::OkStatus();
}

absl::StatusOr<rpc::Message<v1::PullSumsReply>> TableServer::PullSums(
    const rpc::MethodCall& call, const v1::PullSumsRequest& request) {
  ASSIGN_OR_RETURN(const std::shared_ptr<LoggedTable> found,
                   Find(request.table()));
  SparseTable* const table = &found->table();
  RETURN_IF_ERROR(CheckTensors(*table, call, 2));
  if (request.num_bags() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        Prefix(*table), "a request for ", request.num_bags(), " bags"));
  }
  RETURN_IF_ERROR(CheckLimits(*table, call.tensors[0], request.num_bags()));
  ASSIGN_OR_RETURN(const std::vector<uint64_t> keys, ReadKeys(call.tensors[0]));
  ASSIGN_OR_RETURN(
      const std::vector<int32_t> bags,
      ReadBags(*table, call.tensors[0], call.tensors[1], request.num_bags()));
  const int64_t width = table->spec().width;
  ASSIGN_OR_RETURN(tensor::Tensor sums,
                   tensor::Tensor::TryEmpty({request.num_bags(), width}));
  float* const out = sums.data<float>();
  std::fill_n(out, sums.num_elements(), 0.0f);
  const MissingRows missing =
      request.keep_missing() ? MissingRows::kKeep : MissingRows::kCreate;
  // Rows of a block stay in the cache until they are added.
  const size_t block =
      std::max<size_t>(kBlockBytes / (width * sizeof(float)), kMinBlockKeys);
  std::vector<float> rows(std::min(block, keys.size()) *
                          static_cast<size_t>(width));
  for (size_t begin = 0; begin < keys.size(); begin += block) {
    const size_t count = std::min(block, keys.size() - begin);
    RETURN_IF_ERROR(table->Pull({&keys[begin], count},
                                {rows.data(), count * width}, missing));
    for (size_t i = 0; i < count; ++i) {
      AddRow(&rows[i * width], width, out + bags[begin + i] * width);
    }
  }
  rpc::Message<v1::PullSumsReply> reply;
  reply.tensors.push_back(std::move(sums));
  return reply;
}

absl::Status TableServer::PushSums(const rpc::MethodCall& call,
                                   const v1::PushSumsRequest& request) {
  ASSIGN_OR_RETURN(const std::shared_ptr<LoggedTable> found,
                   Find(request.table()));
  SparseTable* const table = &found->table();
  RETURN_IF_ERROR(CheckTensors(*table, call, 3));
  const rpc::LazyTensor& gradients = call.tensors[2];
  const int64_t num_bags =
      gradients.shape().rank() == 2 ? gradients.shape()[0] : 0;
  RETURN_IF_ERROR(CheckGradients(*table, num_bags, gradients));
  // The gradients of the distinct keys are held while they are applied.
  RETURN_IF_ERROR(CheckLimits(*table, call.tensors[0],
                              std::max(num_bags, call.tensors[0].shape()[0])));
  RETURN_IF_ERROR(CheckSequence(*table, call, request.sequence()));
  ASSIGN_OR_RETURN(const double learning_rate, LearningRate(*table, request));
  ASSIGN_OR_RETURN(const std::vector<uint64_t> keys, ReadKeys(call.tensors[0]));
  ASSIGN_OR_RETURN(
      const std::vector<int32_t> bags,
      ReadBags(*table, call.tensors[0], call.tensors[1], num_bags));
  const OrderedKeys ordered(keys);
  ASSIGN_OR_RETURN(const std::vector<PartitionRange> ranges,
                   table->SplitOrdered(ordered.keys()));
  const auto width = static_cast<size_t>(table->spec().width);
  GradientReader reader(gradients, width);
  ASSIGN_OR_RETURN(const float* const of_bags,
                   reader.Read(0, static_cast<size_t>(num_bags)));
  std::vector<float> of_keys(ordered.keys().size() * width);
  for (size_t i = 0; i < keys.size(); ++i) {
    AddRow(of_bags + bags[i] * width, width,
           &of_keys[ordered.positions()[i] * width]);
  }
  return found->Push({{call.peer.incarnation, request.sequence()},
                      learning_rate,
                      ordered.keys(),
                      of_keys},
                     ranges);
}

absl::StatusOr<v1::SaveTableReply> TableServer::Save(
    const v1::SaveTableRequest& request) {
  ASSIGN_OR_RETURN(const std::shared_ptr<LoggedTable> found,
                   Find(request.table()));
  ASSIGN_OR_RETURN(
      const TableFileSize size,
      found->Save([&](const SparseTable& rows, int64_t log, std::string& path) {
        return snapshots_.Save(rows, request.name(), request.snapshot(), log,
                               path);
      }));
  v1::SaveTableReply reply;
  reply.set_num_rows(size.rows);
  reply.set_num_bytes(size.bytes);
  return reply;
}

absl::StatusOr<v1::RestoreTableReply> TableServer::Restore(
    const v1::RestoreTableRequest& request) {
  ASSIGN_OR_RETURN(
      std::unique_ptr<SparseTable> rows,
      snapshots_.Restore(request.table(), request.name(),
                         {request.server(), request.num_servers()}));
  v1::RestoreTableReply reply;
  *reply.mutable_table() = ToProto(rows->spec());
  reply.set_num_rows(rows->num_rows());
  const async::MutexLock adding(&adding_);
  {
    const async::MutexLock lock(&mutex_);
    if (!tables_.contains(request.table())) {
      RETURN_IF_ERROR(CheckNumberOfTables());
    }
  }
  RETURN_IF_ERROR(Add(std::move(rows)));
  return reply;
}

std::vector<std::shared_ptr<LoggedTable>> TableServer::Tables() const {
  std::vector<std::shared_ptr<LoggedTable>> tables;
  const async::MutexLock lock(&mutex_);
  for (const auto& [name, table] : tables_) tables.push_back(table);
  return tables;
}

void TableServer::Forget(rpc::Incarnation client) {
  for (const auto& table : Tables()) table->table().Forget(client);
}

std::map<std::string, int64_t> TableServer::DebugNumbers() const {
  const std::vector<std::shared_ptr<LoggedTable>> tables = Tables();
  std::map<std::string, int64_t> numbers = {
      {"tables", static_cast<int64_t>(tables.size())},
      {"rows", 0},
      {"bytes", 0}};
  for (const auto& table : tables) {
    numbers["rows"] += table->table().num_rows();
    numbers["bytes"] += static_cast<int64_t>(table->table().bytes());
  }
  return numbers;
}

}  // namespace hawser::ps

#include "ps/table.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/join.h"
#include "async/status_macros.h"
#include "proto/ps.pb.h"
#include "ps/ordered_keys.h"
#include "ps/service_methods.h"
#include "ps/storage/key_hash.h"
#include "ps/storage/prefetch.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_codec.h"
#include "ps/storage/table_spec.h"
#include "ps/table_client.h"
#include "ps/table_service.h"
#include "rpc/agent/agent.h"
#include "rpc/functions/method.h"
#include "rpc/identity/worker_info.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

// Of calls that read or write files.
constexpr absl::Duration kFileTimeout = absl::Hours(1);

using PullMessage = rpc::Message<v1::PullReply>;
using PushMessage = rpc::Message<v1::PushReply>;

absl::Status CheckServers(const std::vector<std::string>& servers) {
  if (servers.empty()) {
    return absl::InvalidArgumentError("a table needs at least one server");
  }
  if (std::set<std::string>(servers.begin(), servers.end()).size() !=
      servers.size()) {
    return absl::InvalidArgumentError("a server of the table is named twice");
  }
  return absl::OkStatus();
}

ServerPlace PlaceOf(size_t index, const std::vector<std::string>& servers) {
  return {static_cast<int64_t>(index), static_cast<int64_t>(servers.size())};
}

absl::Status CheckKeys(const Tensor& keys) {
  if (keys.defined() && keys.dtype() == tensor::DType::kI64 &&
      keys.device().is_cpu()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("keys must be i64 on cpu, not ",
                   keys.defined() ? keys.ToString() : "undefined"));
}

absl::Status CheckBags(const Tensor& keys) {
  RETURN_IF_ERROR(CheckKeys(keys));
  if (keys.rank() > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "keys of bags must be i64[bags..., n], not a scalar");
}

// The shape of a row per bag of `keys`.
tensor::Shape SumsShape(const Tensor& keys, int64_t width) {
  std::vector<int64_t> sizes(keys.shape().begin(), keys.shape().end());
  sizes.back() = width;
  return tensor::Shape(sizes);
}

absl::Status CheckGradients(const Tensor& gradients,
                            const tensor::Shape& expected) {
  if (gradients.defined() && gradients.dtype() == tensor::DType::kF32 &&
      gradients.shape() == expected && gradients.device().is_cpu()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "gradients must be f32", expected.ToString(), " on cpu, not ",
      gradients.defined() ? gradients.ToString() : "undefined"));
}

tensor::Shape RowsShape(const Tensor& keys, int64_t width) {
  std::vector<int64_t> sizes(keys.shape().begin(), keys.shape().end());
  sizes.push_back(width);
  return tensor::Shape(sizes);
}

std::span<const uint64_t> Numbers(const Tensor& keys) {
  return {reinterpret_cast<const uint64_t*>(keys.data<int64_t>()),
          static_cast<size_t>(keys.num_elements())};
}

// The tensor of a reply, which must be f32 of this shape.
absl::StatusOr<Tensor> OnlyRows(std::vector<Tensor> tensors,
                                const tensor::Shape& shape) {
  if (tensors.size() == 1 && tensors[0].dtype() == tensor::DType::kF32 &&
      tensors[0].shape() == shape) {
    return std::move(tensors[0]);
  }
  return absl::InternalError(absl::StrCat(
      "a server replied to a request for f32", shape.ToString(), " with ",
      tensors.size(), " tensors",
      tensors.empty() ? "" : ", the first " + tensors[0].ToString()));
}

}  // namespace

// The constant parts of a handle.
class Table::State {
 public:
  // `servers` are not more than the shards.
  State(std::shared_ptr<TableClient> client, const TableSpec& spec,
        std::vector<std::string> servers)
      : client_(std::move(client)), spec_(spec), servers_(std::move(servers)) {
    for (size_t i = 0; i < servers_.size(); ++i) {
      const ShardRange shards =
          *ShardsOf(PlaceOf(i, servers_), spec_.num_shards);
      shard_ends_.push_back(shards.first + shards.count);
    }
  }

  TableClient& client() const { return *client_; }
  const TableSpec& spec() const { return spec_; }
  const std::vector<std::string>& servers() const { return servers_; }

  // Returns the rows of `keys`, i64[n], from `server`.
  async::Future<Tensor> PullFrom(const std::string& server, Tensor keys,
                                 const PullOptions& options) const {
    v1::PullRequest request;
    request.set_table(spec_.name);
    request.set_keep_missing(!options.create_missing);
    const tensor::Shape shape({keys.num_elements(), spec_.width});
    return client_->Call(server, kPullMethod, request, {std::move(keys)})
        .Then([shape](
                  absl::StatusOr<PullMessage> reply) -> absl::StatusOr<Tensor> {
          RETURN_IF_ERROR(reply);
          return OnlyRows(std::move(reply->tensors), shape);
        });
  }

  // A server's part of a request: the keys from `begin` to `end`.
  struct Part {
    const std::string* server;
    size_t begin;
    size_t end;
  };

  // A server's part of the keys of bags: i64[m] and i32[m].
  struct BagPart {
    const std::string* server;
    Tensor keys;
    Tensor bags;
  };

  // The parts that are not empty; `keys` is i64[bags..., n].
  std::vector<BagPart> SplitBags(const Tensor& keys) const;
  std::vector<Part> Split(const OrderedKeys& ordered) const {
    std::vector<Part> parts;
    size_t begin = 0;
    for (size_t i = 0; i < servers_.size(); ++i) {
      const size_t end = ordered.CountBelow(shard_ends_[i], spec_.num_shards);
      if (end > begin) parts.push_back({&servers_[i], begin, end});
      begin = end;
    }
    return parts;
  }

 private:
  const std::shared_ptr<TableClient> client_;
  const TableSpec spec_;
  const std::vector<std::string> servers_;
  // The shard after the last one of each server.
  std::vector<int64_t> shard_ends_;
};

namespace {

Tensor KeysOf(const OrderedKeys& ordered, size_t begin, size_t end) {
  Tensor keys = Tensor::Empty({static_cast<int64_t>(end - begin)},
                              {.dtype = tensor::DType::kI64});
  std::memcpy(keys.raw_data(), &ordered.keys()[begin],
              (end - begin) * sizeof(uint64_t));
  return keys;
}

// Whether repeated keys are estimated to be a tenth of `keys` or more, from the
// repeats in a sample: with c equal pairs among m keys, the rate is about
// c * n / m^2.
bool HasManyRepeats(std::span<const uint64_t> keys) {
  constexpr size_t kSample = 256;
  constexpr size_t kSlots = 1024;
  if (keys.size() < 2) return false;
  const size_t sample = std::min(keys.size(), kSample);
  std::array<uint64_t, kSlots> slots = {};
  std::array<bool, kSlots> used = {};
  size_t repeats = 0;
  for (size_t i = 0; i < sample; ++i) {
    const uint64_t key = keys[i * keys.size() / sample];
    size_t slot = HashKey(key) % kSlots;
    while (used[slot] && slots[slot] != key) slot = (slot + 1) % kSlots;
    repeats += used[slot] ? 1 : 0;
    used[slot] = true;
    slots[slot] = key;
  }
  return 10 * repeats * keys.size() >= sample * sample;
}

// Copies the row of each key to its place.
Tensor Expand(const OrderedKeys& ordered, const std::vector<Tensor>& parts,
              const tensor::Shape& shape, int64_t width) {
  Tensor rows = Tensor::Empty(shape);
  std::vector<const float*> distinct;
  distinct.reserve(ordered.keys().size());
  for (const Tensor& part : parts) {
    for (int64_t i = 0; i < part.dim(0); ++i) {
      distinct.push_back(part.data<float>() + i * width);
    }
  }
  float* next = rows.data<float>();
  const size_t bytes = static_cast<size_t>(width) * sizeof(float);
  const std::span<const uint32_t> positions = ordered.positions();
  constexpr size_t kAhead = 16;
  for (size_t i = 0; i < positions.size(); ++i) {
    if (i + kAhead < positions.size()) {
      Prefetch(distinct[positions[i + kAhead]], bytes);
    }
    std::memcpy(next, distinct[positions[i]], bytes);
    next += width;
  }
  return rows;
}

// Adds the gradients of each distinct key, in the order of the list.
Tensor Combine(const OrderedKeys& ordered, const Tensor& gradients,
               int64_t width) {
  const auto count = static_cast<int64_t>(ordered.keys().size());
  Tensor combined = Tensor::Empty({count, width});
  std::vector<bool> begun(ordered.keys().size());
  const float* source = gradients.data<float>();
  for (uint32_t position : ordered.positions()) {
    float* const row = combined.data<float>() + position * width;
    if (!begun[position]) {
      begun[position] = true;
      std::memcpy(row, source, static_cast<size_t>(width) * sizeof(float));
    } else {
      for (int64_t i = 0; i < width; ++i) row[i] += source[i];
    }
    source += width;
  }
  return combined;
}

// The sum of the servers' sizes.
template <class Reply>
absl::StatusOr<TableSize> TotalOf(
    const absl::StatusOr<std::vector<rpc::Message<Reply>>>& parts) {
  RETURN_IF_ERROR(parts);
  TableSize size;
  for (const rpc::Message<Reply>& part : *parts) {
    size.rows += part.body.num_rows();
    size.bytes += part.body.num_bytes();
  }
  return size;
}

}  // namespace

absl::StatusOr<Table> Table::Create(rpc::Agent& agent,
                                    const TableSpec& description,
                                    std::vector<std::string> servers) {
  return CreateAsync(agent, description, std::move(servers)).Wait();
}

async::Future<Table> Table::CreateAsync(rpc::Agent& agent,
                                        const TableSpec& description,
                                        std::vector<std::string> servers) {
  using Reply = rpc::Message<v1::CreateTableReply>;
  const auto begin =
      [&]() -> absl::StatusOr<std::vector<async::Future<Reply>>> {
    ASSIGN_OR_RETURN(const TableSpec spec, NormalizeTableSpec(description));
    RETURN_IF_ERROR(CheckServers(servers));
    ASSIGN_OR_RETURN(const std::shared_ptr<TableClient> client,
                     ClientOf(agent));
    std::vector<v1::CreateTableRequest> requests(servers.size());
    for (size_t i = 0; i < servers.size(); ++i) {
      ASSIGN_OR_RETURN(const ShardRange shards,
                       ShardsOf(PlaceOf(i, servers), spec.num_shards));
      *requests[i].mutable_table() = ToProto(spec);
      *requests[i].mutable_shards() = ToProto(shards);
    }
    std::vector<async::Future<Reply>> replies;
    for (size_t i = 0; i < servers.size(); ++i) {
      replies.push_back(
          client->Call(servers[i], kCreateTableMethod, requests[i]));
    }
    return replies;
  };
  absl::StatusOr<std::vector<async::Future<Reply>>> replies = begin();
  if (!replies.ok()) return async::MakeReadyFuture<Table>(replies.status());
  auto state = std::make_shared<const State>(
      *ClientOf(agent), *NormalizeTableSpec(description), std::move(servers));
  return async::JoinAll(*std::move(replies))
      .Then([state = std::move(state)](
                const absl::StatusOr<std::vector<Reply>>& done)
                -> absl::StatusOr<Table> {
        RETURN_IF_ERROR(done);
        return Table(state);
      });
}

absl::StatusOr<Table> Table::Open(rpc::Agent& agent, const std::string& name,
                                  std::vector<std::string> servers) {
  ASSIGN_OR_RETURN(std::shared_ptr<TableClient> client, ClientOf(agent));
  RETURN_IF_ERROR(CheckServers(servers));
  std::vector<async::Future<rpc::Message<v1::DescribeTableReply>>> futures;
  v1::DescribeTableRequest request;
  request.set_table(name);
  futures.reserve(servers.size());
  for (const std::string& server : servers) {
    futures.push_back(client->Call(server, kDescribeTableMethod, request));
  }
  ASSIGN_OR_RETURN(const auto replies,
                   async::JoinAll(std::move(futures)).Wait());
  ASSIGN_OR_RETURN(const TableSpec spec, FromProto(replies[0].body.table()));
  for (size_t i = 0; i < servers.size(); ++i) {
    ASSIGN_OR_RETURN(const TableSpec part, FromProto(replies[i].body.table()));
    const ShardRange held = FromProto(replies[i].body.shards());
    ASSIGN_OR_RETURN(const ShardRange wanted,
                     ShardsOf(PlaceOf(i, servers), spec.num_shards));
    if (part != spec || held != wanted) {
      return absl::FailedPreconditionError(absl::StrCat(
          "table \"", name, "\": server '", servers[i], "' holds ", held.count,
          " shards from ", held.first,
          " on, which does not fit its place in this list of ", servers.size(),
          " servers: name all servers, in the order in which the table was "
          "created"));
    }
  }
  return Table(std::make_shared<const State>(std::move(client), spec,
                                             std::move(servers)));
}

absl::StatusOr<Table> Table::Restore(rpc::Agent& agent, const std::string& name,
                                     const std::string& snapshot,
                                     std::vector<std::string> servers) {
  ASSIGN_OR_RETURN(std::shared_ptr<TableClient> client, ClientOf(agent));
  RETURN_IF_ERROR(CheckServers(servers));
  v1::RestoreTableRequest request;
  request.set_table(name);
  request.set_name(snapshot);
  std::vector<async::Future<rpc::Message<v1::RestoreTableReply>>> futures;
  for (size_t i = 0; i < servers.size(); ++i) {
    request.set_server(static_cast<int64_t>(i));
    request.set_num_servers(static_cast<int64_t>(servers.size()));
    futures.push_back(client->Call(servers[i], kRestoreTableMethod, request, {},
                                   {.timeout = kFileTimeout}));
  }
  ASSIGN_OR_RETURN(const auto replies,
                   async::JoinAll(std::move(futures)).Wait());
  ASSIGN_OR_RETURN(const TableSpec spec, FromProto(replies[0].body.table()));
  for (size_t i = 0; i < servers.size(); ++i) {
    ASSIGN_OR_RETURN(const TableSpec part, FromProto(replies[i].body.table()));
    // The servers' replies are not trusted.
    RETURN_IF_ERROR(ShardsOf(PlaceOf(i, servers), spec.num_shards));
    if (part == spec) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "table \"", name, "\": servers '", servers[0], "' and '", servers[i],
        "' have restored different tables from snapshot \"", snapshot,
        "\": they do not see the same files"));
  }
  return Table(std::make_shared<const State>(std::move(client), spec,
                                             std::move(servers)));
}

// Keys and their bags, in parts for the servers.
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

async::Future<Tensor> Table::PullSums(const Tensor& keys,
                                      const PullOptions& options) const {
  if (absl::Status status = CheckBags(keys); !status.ok()) {
    return async::MakeReadyFuture<Tensor>(std::move(status));
  }
  absl::StatusOr<Tensor> dense = keys.Contiguous();
  if (!dense.ok()) return async::MakeReadyFuture<Tensor>(dense.status());
  const tensor::Shape shape = SumsShape(keys, spec().width);
  const tensor::Shape sums({shape.num_elements() / spec().width, spec().width});
  v1::PullSumsRequest request;
  request.set_table(spec().name);
  request.set_num_bags(sums[0]);
  request.set_keep_missing(!options.create_missing);
  std::vector<async::Future<Tensor>> parts;
  for (State::BagPart& part : state_->SplitBags(*dense)) {
    parts.push_back(
        state_->client()
            .Call(*part.server, kPullSumsMethod, request,
                  {std::move(part.keys), std::move(part.bags)})
            .Then([sums](absl::StatusOr<rpc::Message<v1::PullSumsReply>> reply)
                      -> absl::StatusOr<Tensor> {
              RETURN_IF_ERROR(reply);
              return OnlyRows(std::move(reply->tensors), sums);
            }));
  }
  return async::JoinAll(std::move(parts))
      .Then([shape](absl::StatusOr<std::vector<Tensor>> rows)
                -> absl::StatusOr<Tensor> {
        RETURN_IF_ERROR(rows);
        if (rows->empty()) return Tensor::Zeros(shape);
        Tensor total = std::move((*rows)[0]);
        for (size_t i = 1; i < rows->size(); ++i) {
          float* const to = total.data<float>();
          const float* const from = std::as_const((*rows)[i]).data<float>();
          for (int64_t k = 0; k < total.num_elements(); ++k) to[k] += from[k];
        }
        return total.Reshape(shape);
      });
}

async::Future<void> Table::PushSums(const Tensor& keys, const Tensor& gradients,
                                    const PushOptions& options) const {
  const auto failed = [](absl::Status status) {
    return async::MakeReadyFuture<void>(std::move(status));
  };
  if (absl::Status status = CheckBags(keys); !status.ok()) {
    return failed(std::move(status));
  }
  const tensor::Shape expected = SumsShape(keys, spec().width);
  if (absl::Status status = CheckGradients(gradients, expected); !status.ok()) {
    return failed(std::move(status));
  }
  absl::StatusOr<Tensor> dense_keys = keys.Contiguous();
  if (!dense_keys.ok()) return failed(dense_keys.status());
  absl::StatusOr<Tensor> rows = gradients.Detach().Reshape(
      {expected.num_elements() / spec().width, spec().width});
  if (rows.ok()) rows = rows->Contiguous();
  if (!rows.ok()) return failed(rows.status());
  v1::PushSumsRequest request;
  request.set_table(spec().name);
  request.set_sequence(state_->client().NextSequence(spec().name));
  if (options.learning_rate.has_value()) {
    request.set_learning_rate(*options.learning_rate);
  }
  std::vector<async::Future<rpc::Message<v1::PushSumsReply>>> replies;
  for (State::BagPart& part : state_->SplitBags(*dense_keys)) {
    replies.push_back(state_->client().Call(
        *part.server, kPushSumsMethod, request,
        {std::move(part.keys), std::move(part.bags), *rows}));
  }
  return async::JoinAll(std::move(replies))
      .Then(
          [](const absl::StatusOr<std::vector<rpc::Message<v1::PushSumsReply>>>&
                 messages) { return messages.status(); });
}

async::Future<TableSize> Table::Save(const std::string& name) const {
  v1::SaveTableRequest request;
  request.set_table(spec().name);
  request.set_name(name);
  request.set_snapshot(rpc::ToNumber(rpc::NewIncarnation()));
  std::vector<async::Future<rpc::Message<v1::SaveTableReply>>> replies;
  for (const std::string& server : servers()) {
    replies.push_back(state_->client().Call(server, kSaveTableMethod, request,
                                            {}, {.timeout = kFileTimeout}));
  }
  return async::JoinAll(std::move(replies)).Then(TotalOf<v1::SaveTableReply>);
}

const TableSpec& Table::spec() const { return state_->spec(); }

const std::vector<std::string>& Table::servers() const {
  return state_->servers();
}

async::Future<Tensor> Table::Pull(const Tensor& keys,
                                  const PullOptions& options) const {
  if (absl::Status status = CheckKeys(keys); !status.ok()) {
    return async::MakeReadyFuture<Tensor>(std::move(status));
  }
  absl::StatusOr<Tensor> flat = keys.Reshape({keys.num_elements()});
  if (flat.ok()) flat = flat->Contiguous();
  if (!flat.ok()) return async::MakeReadyFuture<Tensor>(flat.status());
  const tensor::Shape shape = RowsShape(keys, spec().width);
  const std::span<const uint64_t> numbers = Numbers(std::as_const(*flat));
  if (servers().size() == 1 && !HasManyRepeats(numbers)) {
    return state_->PullFrom(servers()[0], *std::move(flat), options)
        .Then([shape](absl::StatusOr<Tensor> rows) -> absl::StatusOr<Tensor> {
          RETURN_IF_ERROR(rows);
          return rows->Reshape(shape);
        });
  }
  auto ordered = std::make_shared<const OrderedKeys>(numbers);
  std::vector<async::Future<Tensor>> parts;
  for (const State::Part& part : state_->Split(*ordered)) {
    parts.push_back(state_->PullFrom(
        *part.server, KeysOf(*ordered, part.begin, part.end), options));
  }
  return async::JoinAll(std::move(parts))
      .Then([ordered = std::move(ordered), shape, width = spec().width](
                const absl::StatusOr<std::vector<Tensor>>& rows)
                -> absl::StatusOr<Tensor> {
        RETURN_IF_ERROR(rows);
        return Expand(*ordered, *rows, shape, width);
      });
}

async::Future<void> Table::Push(const Tensor& keys, const Tensor& gradients,
                                const PushOptions& options) const {
  const auto failed = [](absl::Status status) {
    return async::MakeReadyFuture<void>(std::move(status));
  };
  if (absl::Status status = CheckKeys(keys); !status.ok()) {
    return failed(std::move(status));
  }
  const tensor::Shape expected = RowsShape(keys, spec().width);
  if (absl::Status status = CheckGradients(gradients, expected); !status.ok()) {
    return failed(std::move(status));
  }
  absl::StatusOr<Tensor> dense_keys = keys.Contiguous();
  absl::StatusOr<Tensor> dense = gradients.Contiguous();
  if (!dense_keys.ok()) return failed(dense_keys.status());
  if (!dense.ok()) return failed(dense.status());
  const OrderedKeys ordered(Numbers(std::as_const(*dense_keys)));
  const int64_t width = spec().width;
  Tensor rows;
  if (ordered.in_order()) {
    absl::StatusOr<Tensor> matrix =
        dense->Detach().Reshape({dense_keys->num_elements(), width});
    if (!matrix.ok()) return failed(matrix.status());
    rows = *std::move(matrix);
  } else {
    rows = Combine(ordered, *dense, width);
  }
  v1::PushRequest request;
  request.set_table(spec().name);
  request.set_sequence(state_->client().NextSequence(spec().name));
  if (options.learning_rate.has_value()) {
    request.set_learning_rate(*options.learning_rate);
  }
  std::vector<async::Future<PushMessage>> replies;
  for (const State::Part& part : state_->Split(ordered)) {
    absl::StatusOr<Tensor> part_rows =
        rows.Narrow(0, static_cast<int64_t>(part.begin),
                    static_cast<int64_t>(part.end - part.begin));
    if (!part_rows.ok()) return failed(part_rows.status());
    replies.push_back(state_->client().Call(
        *part.server, kPushMethod, request,
        {KeysOf(ordered, part.begin, part.end), *std::move(part_rows)}));
  }
  return async::JoinAll(std::move(replies))
      .Then([](const absl::StatusOr<std::vector<PushMessage>>& messages) {
        return messages.status();
      });
}

async::Future<TableSize> Table::Size() const {
  v1::DescribeTableRequest request;
  request.set_table(spec().name);
  std::vector<async::Future<rpc::Message<v1::DescribeTableReply>>> replies;
  for (const std::string& server : servers()) {
    replies.push_back(
        state_->client().Call(server, kDescribeTableMethod, request));
  }
  return async::JoinAll(std::move(replies))
      .Then(TotalOf<v1::DescribeTableReply>);
}

}  // namespace hawser::ps

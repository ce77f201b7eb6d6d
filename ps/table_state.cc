#include "ps/table_state.h"

#include <algorithm>
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
#include "async/future.h"
#include "async/status_macros.h"
#include "proto/ps.pb.h"
#include "ps/client/table_client.h"
#include "ps/clock/client_clock.h"
#include "ps/ordered_keys.h"
#include "ps/route/table_location.h"
#include "ps/row_encoding.h"
#include "ps/service_methods.h"
#include "ps/storage/consistency.h"
#include "ps/storage/key_hash.h"
#include "ps/storage/table_spec.h"
#include "ps/storage/worker_time.h"
#include "ps/table_arguments.h"
#include "ps/table_route.h"
#include "rpc/functions/method.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::ps {

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

Table::State::State(std::shared_ptr<TableClient> client, const TableSpec& spec,
                    TableRoute route)
    : location_(
          TableLocation::Create(std::move(client), spec, std::move(route))),
      clock_(spec.consistency.clocked() ? location_->client().ClockOf(spec.name)
                                        : nullptr) {}

std::string Table::State::JoinAgain() const {
  return absl::StrCat("table \"", spec().name,
                      "\" was restored from a snapshot, and the clocks of its "
                      "workers begin anew: join them again");
}

namespace {

void SendSteps(const std::vector<ClientClock::Step>& steps,
               const std::shared_ptr<TableLocation>& location,
               const std::shared_ptr<ClientClock>& clock) {
  const TableLocation::Placement placement = location->placement();
  for (const ClientClock::Step& step : steps) {
    v1::AdvanceClockRequest request;
    request.set_table(location->spec().name);
    request.set_version(placement->route.version);
    request.set_join(step.time.join);
    request.set_clock(step.time.clock);
    for (const std::string& server : placement->servers()) {
      const auto pushes = step.pushes.find(server);
      request.set_num_pushes(pushes == step.pushes.end() ? 0 : pushes->second);
      location->client()
          .Call(server, kAdvanceClockMethod, request)
          .OnReady(
              [clock, time = step.time](
                  const absl::StatusOr<rpc::Message<v1::AdvanceClockReply>>&
                      reply) {
                if (!reply.ok()) clock->Fail(time, reply.status());
              });
    }
  }
}

}  // namespace

WorkerTime Table::State::BeginPullAfterPush(WorkerTime push) const {
  if (spec().consistency.mode != Consistency::Mode::kSynchronous) return {};
  const WorkerTime next{push.join, push.clock + 1};
  clock_->BeginPullAt(next);
  return next;
}

async::Future<Tensor> Table::State::EndPull(WorkerTime time,
                                            async::Future<Tensor> pull) const {
  if (!time.joined()) return pull;
  return std::move(pull).Then(
      [time, location = location_,
       clock = clock_](absl::StatusOr<Tensor> rows) -> absl::StatusOr<Tensor> {
        ps::SendSteps(clock->EndPull(time), location, clock);
        if (!rows.ok()) RETURN_IF_ERROR(clock->status());
        return rows;
      });
}

void Table::State::SendSteps(
    const std::vector<ClientClock::Step>& steps) const {
  ps::SendSteps(steps, location_, clock_);
}

std::vector<Table::State::Part> Table::State::Split(
    const TablePlacement& placement, const OrderedKeys& ordered) const {
  std::vector<Part> parts;
  size_t begin = 0;
  for (size_t i = 0; i < placement.servers().size(); ++i) {
    const size_t end =
        ordered.CountBelow(placement.shard_ends[i], spec().num_shards);
    if (end > begin) parts.push_back({&placement.servers()[i], begin, end});
    begin = end;
  }
  return parts;
}

std::vector<Table::State::BagPart> Table::State::SplitBags(
    const TablePlacement& placement, const Tensor& keys) const {
  const std::span<const uint64_t> numbers = Numbers(keys);
  const auto bag_size = static_cast<size_t>(std::max<int64_t>(keys.dim(-1), 1));
  const std::vector<std::string>& servers = placement.servers();
  const std::vector<int64_t>& ends = placement.shard_ends;
  std::vector<std::vector<int64_t>> part_keys(servers.size());
  std::vector<std::vector<int32_t>> part_bags(servers.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto shard = static_cast<int64_t>(
        SplitHash(HashKey(numbers[i]), static_cast<uint32_t>(spec().num_shards))
            .part);
    const size_t server =
        servers.size() == 1
            ? 0
            : static_cast<size_t>(
                  std::upper_bound(ends.begin(), ends.end(), shard) -
                  ends.begin());
    part_keys[server].push_back(static_cast<int64_t>(numbers[i]));
    part_bags[server].push_back(static_cast<int32_t>(i / bag_size));
  }
  std::vector<BagPart> parts;
  for (size_t i = 0; i < servers.size(); ++i) {
    if (part_keys[i].empty()) continue;
    const auto count = static_cast<int64_t>(part_keys[i].size());
    parts.push_back({&servers[i], Tensor::FromVector(part_keys[i], {count}),
                     Tensor::FromVector(part_bags[i], {count})});
  }
  return parts;
}

Tensor KeysOf(const OrderedKeys& ordered, size_t begin, size_t end) {
  Tensor keys = Tensor::Empty({static_cast<int64_t>(end - begin)},
                              {.dtype = tensor::DType::kI64});
  std::memcpy(keys.raw_data(), &ordered.keys()[begin],
              (end - begin) * sizeof(uint64_t));
  return keys;
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

async::Future<Tensor> RowsOfReply(async::Future<std::vector<Tensor>> tensors,
                                  const tensor::Shape& shape) {
  return std::move(tensors).Then(
      [shape](
          absl::StatusOr<std::vector<Tensor>> reply) -> absl::StatusOr<Tensor> {
        RETURN_IF_ERROR(reply);
        return RowsOfReply(*std::move(reply), shape);
      });
}

async::Future<void> WithoutRows(async::Future<std::vector<Tensor>> rows) {
  return std::move(rows).Then(
      [](const absl::StatusOr<std::vector<Tensor>>& reply) {
        return reply.status();
      });
}

}  // namespace hawser::ps

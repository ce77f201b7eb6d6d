// The state of a table handle, shared by its copies.

#ifndef HAWSER_PS_TABLE_STATE_H_
#define HAWSER_PS_TABLE_STATE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "proto/ps.pb.h"
#include "ps/client/bytes_under_way.h"
#include "ps/client/table_client.h"
#include "ps/clock/client_clock.h"
#include "ps/ordered_keys.h"
#include "ps/route/table_location.h"
#include "ps/row_encoding.h"
#include "ps/row_values.h"
#include "ps/storage/table_spec.h"
#include "ps/storage/worker_time.h"
#include "ps/table.h"
#include "ps/table_route.h"
#include "rpc/functions/method.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::ps {

// The rows in the tensors of a reply, f32 of this shape. kInternal: a server
// has sent other tensors.
absl::StatusOr<Tensor> RowsOfReply(std::vector<Tensor> tensors,
                                   const tensor::Shape& shape);
async::Future<Tensor> RowsOfReply(async::Future<std::vector<Tensor>> tensors,
                                  const tensor::Shape& shape);
// The status of a reply.
async::Future<void> WithoutRows(async::Future<std::vector<Tensor>> rows);
// The number of an encoding of a reply in requests.
v1::RowEncoding ToProto(RowEncoding encoding);

// The distinct keys from number `begin` to `end`: i64[end - begin].
Tensor KeysOf(const OrderedKeys& ordered, size_t begin, size_t end);

// Whether a pull returns the results of a read function.
inline bool CallsFunction(const PullOptions& options) {
  return !options.function.empty() || !options.arguments.empty();
}

// kInvalidArgument: there are none, or one is named twice.
absl::Status CheckServers(const std::vector<std::string>& servers);

template <class Request>
void SetTime(WorkerTime time, Request& request) {
  if (!time.joined()) return;
  request.mutable_time()->set_join(time.join);
  request.mutable_time()->set_clock(time.clock);
}

class Table::State : public std::enable_shared_from_this<State> {
 public:
  // The servers of `route` are not more than the shards.
  State(std::shared_ptr<TableClient> client, const TableSpec& spec,
        TableRoute route);

  TableLocation& location() const { return *location_; }
  TableClient& client() const { return location_->client(); }
  const TableSpec& spec() const { return location_->spec(); }
  TableLocation::Placement placement() const { return location_->placement(); }

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

  // The parts that are not empty. They refer to `placement`.
  std::vector<Part> Split(const TablePlacement& placement,
                          const OrderedKeys& ordered) const;
  // The same for `keys`, i64[bags..., n].
  std::vector<BagPart> SplitBags(const TablePlacement& placement,
                                 const Tensor& keys) const;

  // Sends a request at this time: as TableLocation::Call, unless it belongs to
  // a clock. `placement` is that by which its parts were counted, `bytes` the
  // size of request and reply. Of a table without clocks, blocks as
  // TableClient::HoldBytes does; with clocks, other workers may wait for this
  // request.
  template <class T>
  async::Future<T> Call(WorkerTime time,
                        const TableLocation::Placement& placement,
                        int64_t bytes, TableLocation::Sender<T> send) const {
    if (clock_ == nullptr) {
      absl::StatusOr<HeldBytes> held = client().HoldBytes(bytes);
      if (!held.ok()) return async::MakeReadyFuture<T>(held.status());
      return location_->Call<T>(std::move(send), *std::move(held));
    }
    if (!time.joined()) return location_->Call<T>(std::move(send));
    return location_->WithoutFollowing<T>(
        placement, send(*placement, TableClient::DefaultOptions()),
        JoinAgain());
  }
  // Of so many keys, and of rows of `width` weights.
  static int64_t BytesOf(int64_t keys, int64_t rows, int64_t width) {
    return keys * static_cast<int64_t>(sizeof(uint64_t)) +
           rows * width * static_cast<int64_t>(sizeof(float));
  }
  // The error of requests with a clock after the table has moved.
  std::string JoinAgain() const;

  // A push that was sent: its distinct keys, and the rows in the replies of the
  // servers, one after the other, which are undefined unless the request pulls.
  struct SentPush {
    std::shared_ptr<const OrderedKeys> ordered;
    async::Future<std::vector<Tensor>> rows;
    WorkerTime time = {};
  };

  // Sends `request` with the gradients or weights `values`, f32[keys...,
  // width], in the form `encoding`; gradients of repeated keys are added. Sets
  // the time of the request, except that assignments have none.
  // kInvalidArgument as Table::Push and Assign; errors of
  // ClientClock::BeginPush.
  absl::StatusOr<SentPush> SendPush(const Tensor& keys, const RowValues& values,
                                    v1::PushRequest request,
                                    RowEncoding encoding) const;

  // Table::Pull and PullSums with a read function; `keys` are checked.
  struct BegunResults;
  absl::StatusOr<BegunResults> BeginResults(const Tensor& keys,
                                            const PullOptions& options) const;
  async::Future<Tensor> PullResults(const Tensor& keys,
                                    const PullOptions& options) const;
  async::Future<Tensor> PullSumsOfResults(const Tensor& keys,
                                          const PullOptions& options) const;
  // Sends a pull of `keys`, i64[n], to the servers of `placement`. Returns the
  // rows in this shape.
  async::Future<Tensor> SendPull(const Tensor& keys, bool has_repeats,
                                 const tensor::Shape& shape,
                                 const v1::PullRequest& request,
                                 const TablePlacement& placement,
                                 const rpc::MethodCallOptions& options) const;

  // A request to update rows, with the number of the next push.
  template <class Request>
  Request NewPush(const PushOptions& options) const {
    Request request;
    request.set_table(spec().name);
    request.set_sequence(client().NextSequence(spec().name));
    if (options.learning_rate.has_value()) {
      request.set_learning_rate(*options.learning_rate);
    }
    if (options.step.has_value()) request.set_step(*options.step);
    return request;
  }

  // This worker's clock; null if the table is asynchronous.
  const std::shared_ptr<ClientClock>& clock() const { return clock_; }

  // Begins a pull: the time of its requests. Errors of ClientClock::BeginPull.
  absl::StatusOr<WorkerTime> BeginPull() const {
    return clock_ == nullptr ? WorkerTime() : clock_->BeginPull();
  }
  // The same for one that a push at this time does: of a synchronous table, it
  // belongs to the next clock.
  WorkerTime BeginPullAfterPush(WorkerTime push) const;
  // Follows when `pull` is complete. If it failed, and so did the clock: the
  // error of the clock, which says why.
  async::Future<Tensor> EndPull(WorkerTime time,
                                async::Future<Tensor> pull) const;

  // Begins a push whose `parts` are sent to their servers: the time of its
  // requests. Errors of ClientClock::BeginPush.
  template <class AnyPart>
  absl::StatusOr<WorkerTime> BeginPush(
      const std::vector<AnyPart>& parts) const {
    if (clock_ == nullptr) return WorkerTime();
    std::vector<std::string> servers;
    for (const AnyPart& part : parts) servers.push_back(*part.server);
    return clock_->BeginPush(servers);
  }
  // Follows BeginPush: after an error of a reply, the clock does not go on.
  template <class T>
  async::Future<T> EndPush(WorkerTime time, async::Future<T> push) const {
    if (!time.joined()) return push;
    return std::move(push).Then(
        [clock = clock_, time](async::Result<T> result) -> async::Result<T> {
          const absl::Status status = StatusOfResult(result);
          if (!status.ok()) clock->Fail(time, status);
          return result;
        });
  }

  // Tells the servers that this worker has reached clocks. If the table has
  // moved, the clock fails.
  void SendSteps(const std::vector<ClientClock::Step>& steps) const;

 private:
  // Sends `rows` of the ordered keys to the servers of `placement`.
  async::Future<std::vector<Tensor>> SendPushParts(
      const OrderedKeys& ordered, const RowValues& rows, RowEncoding encoding,
      const v1::PushRequest& request, const TablePlacement& placement,
      const rpc::MethodCallOptions& options) const;

  const std::shared_ptr<TableLocation> location_;
  // Null if the table is asynchronous.
  const std::shared_ptr<ClientClock> clock_;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_TABLE_STATE_H_

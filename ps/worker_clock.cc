#include "ps/worker_clock.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/future.h"
#include "async/join.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "proto/ps.pb.h"
#include "ps/client/table_client.h"
#include "ps/clock/client_clock.h"
#include "ps/route/join_parts.h"
#include "ps/route/moved_table.h"
#include "ps/route/table_location.h"
#include "ps/service_methods.h"
#include "ps/storage/table_spec.h"
#include "ps/storage/worker_time.h"
#include "ps/table.h"
#include "ps/table_state.h"
#include "rpc/functions/method.h"

namespace hawser::ps {
namespace {

using JoinReplies = std::vector<rpc::Message<v1::JoinClockReply>>;

}  // namespace

class WorkerClock::State {
 public:
  // A table, and the number of the join.
  struct Member {
    std::shared_ptr<const Table::State> table;
    uint64_t join = 0;
  };

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { (void)Leave(); }

  absl::Status Add(std::shared_ptr<const Table::State> table);
  // Asks all servers to let this worker in, at `clock`; 0: at theirs.
  async::Future<JoinReplies> SendJoins(int num_workers, int64_t clock) const;
  void Begin(int64_t clock) {
    for (const Member& member : members_) member.table->clock()->Join(clock);
  }

  int64_t clock() const { return members_[0].table->clock()->clock(); }
  absl::Status Advance();
  async::Future<void> Leave();

 private:
  std::vector<Member> members_;
  async::Mutex mutex_;
  bool left_ ABSL_GUARDED_BY(mutex_) = false;
};

absl::Status WorkerClock::State::Add(
    std::shared_ptr<const Table::State> table) {
  if (table->clock() == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "table \"", table->spec().name,
        "\" is asynchronous and has no clock: create it with another "
        "TableSpec::consistency"));
  }
  ASSIGN_OR_RETURN(const uint64_t join, table->clock()->BeginJoin());
  members_.push_back({std::move(table), join});
  return absl::OkStatus();
}

async::Future<JoinReplies> WorkerClock::State::SendJoins(int num_workers,
                                                         int64_t clock) const {
  std::vector<async::Future<JoinReplies>> joins;
  for (const Member& member : members_) {
    v1::JoinClockRequest request;
    request.set_table(member.table->spec().name);
    request.set_join(member.join);
    request.set_num_workers(num_workers);
    request.set_clock(clock);
    joins.push_back(member.table->location().Call<JoinReplies>(
        [table = member.table, request](const TablePlacement& placement,
                                        const rpc::MethodCallOptions& options) {
          v1::JoinClockRequest versioned = request;
          versioned.set_version(placement.route.version);
          std::vector<async::Future<rpc::Message<v1::JoinClockReply>>> replies;
          for (const std::string& server : placement.servers()) {
            replies.push_back(table->client().Call(server, kJoinClockMethod,
                                                   versioned, {}, options));
          }
          return JoinParts(std::move(replies));
        }));
  }
  return async::JoinAll(std::move(joins))
      .Then([](absl::StatusOr<std::vector<JoinReplies>> tables)
                -> absl::StatusOr<JoinReplies> {
        RETURN_IF_ERROR(tables);
        JoinReplies all;
        for (JoinReplies& replies : *tables) {
          all.insert(all.end(), replies.begin(), replies.end());
        }
        return all;
      });
}

absl::Status WorkerClock::State::Advance() {
  for (const Member& member : members_) {
    RETURN_IF_ERROR(member.table->clock()->status());
  }
  for (const Member& member : members_) {
    ASSIGN_OR_RETURN(const std::vector<ClientClock::Step> steps,
                     member.table->clock()->Advance());
    member.table->SendSteps(steps);
  }
  return absl::OkStatus();
}

async::Future<void> WorkerClock::State::Leave() {
  {
    const async::MutexLock lock(&mutex_);
    if (std::exchange(left_, true)) {
      return async::MakeReadyFuture<void>(absl::OkStatus());
    }
  }
  std::vector<async::Future<void>> replies;
  for (const Member& member : members_) {
    const Table::State& table = *member.table;
    v1::LeaveClockRequest request;
    request.set_table(table.spec().name);
    request.set_join(member.join);
    // Before the join was accepted there is nothing to complete.
    const absl::Status status = table.clock()->status();
    const WorkerTime time = table.clock()->Leave();
    request.set_clock(time.clock);
    request.set_abandon(!time.joined() || !status.ok());
    const TableLocation::Placement placement = table.placement();
    request.set_version(placement->route.version);
    for (const std::string& server : placement->servers()) {
      replies.push_back(
          table.client()
              .Call(server, kLeaveClockMethod, request)
              .Then([](const absl::StatusOr<rpc::Message<v1::LeaveClockReply>>&
                           reply) {
                // The membership has ended with the version that it was of.
                if (MovedRouteOf(reply.status()).has_value()) {
                  return absl::OkStatus();
                }
                return reply.status();
              }));
    }
  }
  return async::JoinAll(std::move(replies));
}

// Steps:
//   1. Ask all servers to let the worker in. From then on no server goes past
//      the clock in its reply.
//   2. Begin at the highest of these clocks, which no worker has passed.
async::Future<WorkerClock> WorkerClock::JoinAsync(
    const std::vector<Table>& tables, const JoinOptions& options) {
  auto state = std::make_shared<State>();
  absl::Status status;
  if (tables.empty()) {
    status = absl::InvalidArgumentError("a clock needs at least one table");
  }
  for (const Table& table : tables) {
    if (status.ok()) status = state->Add(table.state_);
  }
  if (!status.ok()) {
    return async::MakeReadyFuture<WorkerClock>(std::move(status));
  }
  const int num_workers = options.num_workers;
  return state->SendJoins(num_workers, 0)
      .Then([state, num_workers](const absl::StatusOr<JoinReplies>& replies)
                -> async::Future<WorkerClock> {
        if (!replies.ok()) {
          return async::MakeReadyFuture<WorkerClock>(replies.status());
        }
        int64_t clock = 0;
        for (const auto& reply : *replies) {
          clock = std::max(clock, reply.body.clock());
        }
        return state->SendJoins(num_workers, clock)
            .Then([state, clock](const absl::StatusOr<JoinReplies>& done)
                      -> absl::StatusOr<WorkerClock> {
              RETURN_IF_ERROR(done);
              state->Begin(clock);
              return WorkerClock(state);
            });
      });
}

absl::StatusOr<WorkerClock> WorkerClock::Join(const std::vector<Table>& tables,
                                              const JoinOptions& options) {
  return JoinAsync(tables, options).Wait();
}

int64_t WorkerClock::clock() const { return state_->clock(); }

absl::Status WorkerClock::Advance() { return state_->Advance(); }

async::Future<void> WorkerClock::Leave() { return state_->Leave(); }

}  // namespace hawser::ps

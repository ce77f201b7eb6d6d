// Table::Restore.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/executor.h"
#include "async/future.h"
#include "async/join.h"
#include "async/status_macros.h"
#include "proto/ps.pb.h"
#include "ps/client/table_client.h"
#include "ps/route/moved_table.h"
#include "ps/service_methods.h"
#include "ps/storage/table_codec.h"
#include "ps/storage/table_spec.h"
#include "ps/table.h"
#include "ps/table_route.h"
#include "ps/table_service.h"
#include "ps/table_state.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/service_host.h"
#include "rpc/functions/method.h"
#include "store/store.h"
#include "telemetry/log.h"

namespace hawser::ps {
namespace {

// Of calls that read files.
constexpr absl::Duration kFileTimeout = absl::Hours(1);

using Replies = std::vector<rpc::Message<v1::RestoreTableReply>>;
template <class Reply>
using Settled = std::vector<absl::StatusOr<rpc::Message<Reply>>>;

// A restore that is under way. Its steps run one after the other:
//   1. Reserve a version, which is above all that the servers know.
//   2. Have all servers prepare it from the files. If one fails, give it up.
//   3. Record it in the store. From then on the table is there.
//   4. Have the servers take it, and those before drop what they have.
class RestoreOperation : public std::enable_shared_from_this<RestoreOperation> {
 public:
  RestoreOperation(rpc::Agent& agent, std::shared_ptr<TableClient> client,
                   const std::string& name, const std::string& snapshot,
                   std::vector<std::string> servers)
      : client_(std::move(client)),
        executor_(&agent.host().executor()),
        store_(*agent.host().store()),
        job_(agent.job()),
        name_(name) {
    request_.set_table(name);
    request_.set_name(snapshot);
    route_.servers = std::move(servers);
  }

  // Returns the table and its version.
  async::Future<TableSpec> Run() {
    auto self = shared_from_this();
    return Describe()
        .Then(executor_,
              [self](const absl::StatusOr<Settled<v1::DescribeTableReply>>&
                         replies) -> absl::Status {
                RETURN_IF_ERROR(replies);
                return self->Reserve(*replies);
              })
        .Then([self](const absl::Status& status) -> async::Future<Replies> {
          if (!status.ok()) return async::MakeReadyFuture<Replies>(status);
          return self->Send();
        })
        .Then(executor_,
              [self](const absl::StatusOr<Replies>& prepared) {
                return self->Record(prepared);
              })
        .Then([self](const absl::Status& recorded) {
          return self->Finish(recorded);
        })
        .Then([self](const absl::Status& done) -> absl::StatusOr<TableSpec> {
          RETURN_IF_ERROR(done);
          return self->spec_;
        });
  }

  const TableRoute& route() const { return route_; }

 private:
  async::Future<Settled<v1::DescribeTableReply>> Describe() {
    v1::DescribeTableRequest request;
    request.set_table(name_);
    std::vector<async::Future<rpc::Message<v1::DescribeTableReply>>> replies;
    for (const std::string& server : route_.servers) {
      replies.push_back(client_->Call(server, kDescribeTableMethod, request));
    }
    return async::JoinAllSettled(std::move(replies));
  }

  // A job that has begun anew has a store that does not know the versions that
  // its servers have.
  absl::Status Reserve(const Settled<v1::DescribeTableReply>& replies) {
    int64_t highest = 0;
    for (const auto& reply : replies) {
      if (reply.ok()) {
        highest = std::max(highest, reply->body.route().version());
      } else if (const auto moved = MovedRouteOf(reply.status())) {
        highest = std::max(highest, moved->version);
      } else if (!absl::IsNotFound(reply.status())) {
        return reply.status();
      }
    }
    ASSIGN_OR_RETURN(route_.version,
                     ReserveVersion(store_, job_, name_, highest + 1));
    *request_.mutable_route() = ToProto(route_);
    return absl::OkStatus();
  }

  // Sends the request to each of the servers, with its number.
  async::Future<Replies> Send() {
    std::vector<async::Future<rpc::Message<v1::RestoreTableReply>>> replies;
    for (size_t i = 0; i < route_.servers.size(); ++i) {
      request_.set_server(static_cast<int64_t>(i));
      replies.push_back(client_->Call(
          route_.servers[i], kRestoreTableMethod, request_, {},
          {.timeout = kFileTimeout,
           .attempt_timeout =
               request_.commit() ? TableClient::DefaultOptions().attempt_timeout
                                 : std::nullopt,
           .follow_restarts = request_.commit()}));
    }
    return async::JoinAll(std::move(replies));
  }

  absl::Status Record(const absl::StatusOr<Replies>& prepared) {
    RETURN_IF_ERROR(prepared);
    ASSIGN_OR_RETURN(spec_, FromProto((*prepared)[0].body.table()));
    for (size_t i = 0; i < prepared->size(); ++i) {
      ASSIGN_OR_RETURN(const TableSpec part,
                       FromProto((*prepared)[i].body.table()));
      if (part == spec_ && part.name == name_) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          "table \"", name_, "\": servers '", route_.servers[0], "' and '",
          route_.servers[i], "' have read different tables from snapshot \"",
          request_.name(), "\": they do not see the same files"));
    }
    ASSIGN_OR_RETURN(before_, RecordMove(store_, job_, route_, spec_));
    return absl::OkStatus();
  }

  async::Future<void> Finish(const absl::Status& recorded) {
    if (!recorded.ok()) {
      return Drop(/*prepared=*/true, route_.servers)
          .Then([recorded](const absl::Status&) { return recorded; });
    }
    request_.set_commit(true);
    std::vector<std::string> others = before_.route.servers;
    std::erase_if(others, [&](const std::string& server) {
      return std::find(route_.servers.begin(), route_.servers.end(), server) !=
             route_.servers.end();
    });
    std::vector<async::Future<void>> done;
    done.push_back(Send().Then(
        [](const absl::StatusOr<Replies>& taken) { return taken.status(); }));
    done.push_back(Drop(/*prepared=*/false, others));
    return async::JoinAll(std::move(done));
  }

  // Has servers drop their versions before this one, or what they have prepared
  // for it. Does not wait long for one that cannot be reached: it finds out
  // when it starts again, or when it can be.
  async::Future<void> Drop(bool prepared,
                           const std::vector<std::string>& servers) {
    v1::DropTableRequest request;
    request.set_table(name_);
    *request.mutable_route() = ToProto(route_);
    request.set_prepared(prepared);
    std::vector<async::Future<void>> done;
    done.reserve(servers.size());
    for (const std::string& server : servers) {
      done.push_back(
          client_
              ->Call(server, kDropTableMethod, request, {},
                     {.timeout = TableClient::kAttemptTimeout})
              .Then([client = client_, server, request](
                        const absl::StatusOr<rpc::Message<v1::DropTableReply>>&
                            reply) {
                if (reply.ok()) return;
                telemetry::Log(
                    telemetry::LogSeverity::kWarning,
                    absl::StrCat("'", server,
                                 "' has not dropped its version of table \"",
                                 request.table(), "\" yet: ",
                                 std::string(reply.status().message())));
                (void)client->Call(server, kDropTableMethod, request);
              }));
    }
    return async::JoinAll(std::move(done));
  }

  const std::shared_ptr<TableClient> client_;
  async::Executor* const executor_;
  store::Store& store_;
  const std::string job_;
  const std::string name_;
  // Written by one step after the other.
  v1::RestoreTableRequest request_;
  TableRoute route_;
  TableSpec spec_;
  RecordedTable before_;
};

}  // namespace

absl::StatusOr<Table> Table::Restore(rpc::Agent& agent, const std::string& name,
                                     const std::string& snapshot,
                                     std::vector<std::string> servers) {
  return RestoreAsync(agent, name, snapshot, std::move(servers)).Wait();
}

async::Future<Table> Table::RestoreAsync(rpc::Agent& agent,
                                         const std::string& name,
                                         const std::string& snapshot,
                                         std::vector<std::string> servers) {
  absl::StatusOr<std::shared_ptr<TableClient>> client = ClientOf(agent);
  absl::Status status = CheckServers(servers);
  status.Update(client.status());
  if (!status.ok()) return async::MakeReadyFuture<Table>(std::move(status));
  auto operation = std::make_shared<RestoreOperation>(
      agent, *client, name, snapshot, std::move(servers));
  return operation->Run().Then(
      [operation, client = *std::move(client)](
          const absl::StatusOr<TableSpec>& spec) -> absl::StatusOr<Table> {
        RETURN_IF_ERROR(spec);
        return Table(
            std::make_shared<const State>(client, *spec, operation->route()));
      });
}

}  // namespace hawser::ps

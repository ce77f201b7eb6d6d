// The clocks of the tables of one server.

#ifndef HAWSER_PS_CLOCK_CLOCK_SERVER_H_
#define HAWSER_PS_CLOCK_CLOCK_SERVER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "async/mutex.h"
#include "net/per_peer_quota.h"
#include "ps/clock/clock_gate.h"
#include "ps/server/table_server.h"
#include "ps/storage/logged_table.h"
#include "ps/table_limits.h"
#include "rpc/agent/host_handle.h"
#include "rpc/agent/service_host.h"
#include "rpc/functions/method.h"
#include "rpc/identity/worker_info.h"

namespace hawser::v1 {
class AdvanceClockRequest;
class JoinClockReply;
class JoinClockRequest;
class LeaveClockRequest;
}  // namespace hawser::v1

namespace hawser::ps {

// Handlers of the methods of proto/ps.proto that concern clocks, and the gates
// by which the handlers of rows let requests for clocked tables through.
//
// Thread-safe.
class ClockServer {
 public:
  ClockServer(std::shared_ptr<TableServer> tables, rpc::ServiceHost& host);

  // The gate of a table. Null if the table is asynchronous; closed if it is not
  // here any more.
  std::shared_ptr<ClockGate> GateOf(const std::shared_ptr<LoggedTable>& table);

  // Errors of ClockGate, and of TableServer::Find; kFailedPrecondition: the
  // table is asynchronous.
  absl::StatusOr<v1::JoinClockReply> Join(const rpc::MethodCall& call,
                                          const v1::JoinClockRequest& request);
  absl::Status Advance(const rpc::MethodCall& call,
                       const v1::AdvanceClockRequest& request);
  async::Future<void> Leave(const rpc::MethodCall& call,
                            const v1::LeaveClockRequest& request);

  // A worker makes no more calls.
  void Lose(rpc::Incarnation worker);

  // Ends the requests that wait for tables that are not here any more, with
  // kUnavailable: those that are sent again learn where the table is.
  void CloseReplaced();

  // The state of each clocked table, by its name.
  std::map<std::string, ClockNumbers> Numbers();

  // Ends all parked requests with kUnavailable.
  void Interrupt();
  // Makes no more calls to the host.
  void Stop();

 private:
  // Whether the server holds this table, and not another version of it.
  bool IsHeld(const std::shared_ptr<LoggedTable>& table) const;
  absl::StatusOr<std::shared_ptr<ClockGate>> Find(const std::string& table,
                                                  int64_t version);

  const std::shared_ptr<TableServer> tables_;
  const std::shared_ptr<net::PerPeerQuota> quota_;
  const std::shared_ptr<rpc::HostHandle> host_;
  async::Mutex mutex_;
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);
  // By the name of the table.
  std::map<std::string, std::shared_ptr<ClockGate>> gates_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_CLOCK_CLOCK_SERVER_H_

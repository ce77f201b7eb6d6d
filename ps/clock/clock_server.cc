#include "ps/clock/clock_server.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/future.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "net/per_peer_quota.h"
#include "proto/ps.pb.h"
#include "ps/clock/clock_gate.h"
#include "ps/server/table_server.h"
#include "ps/storage/logged_table.h"
#include "ps/storage/sparse_table.h"
#include "ps/table_limits.h"
#include "rpc/agent/host_handle.h"
#include "rpc/agent/service_host.h"
#include "rpc/functions/method.h"
#include "rpc/identity/worker_info.h"

namespace hawser::ps {
namespace {

net::PerPeerQuota::Options QuotaOf(const TableLimits& limits) {
  return {
      .items = "requests that wait for a table's clock",
      .advice = "push less per step",
      .items_in_total = {static_cast<size_t>(limits.max_parked_requests),
                         "TableLimits::max_parked_requests"},
      .items_per_peer = {static_cast<size_t>(
                             limits.max_parked_requests_per_peer),
                         "TableLimits::max_parked_requests_per_peer"},
      .bytes_in_total = {static_cast<size_t>(limits.max_parked_bytes),
                         "TableLimits::max_parked_bytes"},
      .bytes_per_peer = {static_cast<size_t>(limits.max_parked_bytes_per_peer),
                         "TableLimits::max_parked_bytes_per_peer"},
  };
}

absl::Status Replaced() {
  return absl::UnavailableError("the table was replaced");
}

}  // namespace

ClockServer::ClockServer(std::shared_ptr<TableServer> tables,
                         rpc::ServiceHost& host)
    : tables_(std::move(tables)),
      quota_(std::make_shared<net::PerPeerQuota>(QuotaOf(tables_->limits()))),
      host_(std::make_shared<rpc::HostHandle>(host)) {}

bool ClockServer::IsHeld(const std::shared_ptr<LoggedTable>& table) const {
  const absl::StatusOr<std::shared_ptr<LoggedTable>> held =
      tables_->Find(table->table().spec().name, /*version=*/0);
  return held.ok() && *held == table;
}

std::shared_ptr<ClockGate> ClockServer::GateOf(
    const std::shared_ptr<LoggedTable>& table) {
  if (table->clocks() == nullptr) return nullptr;
  const std::string& name = table->table().spec().name;
  {
    const async::MutexLock lock(&mutex_);
    const auto gate = gates_.find(name);
    if (gate != gates_.end() && gate->second->table() == table) {
      return gate->second;
    }
  }
  auto made = std::make_shared<ClockGate>(table, quota_, host_);
  std::shared_ptr<ClockGate> replaced;
  {
    const async::MutexLock lock(&mutex_);
    std::shared_ptr<ClockGate>& gate = gates_[name];
    if (gate != nullptr && gate->table() == table) return gate;
    if (!closed_.ok()) made->Close(closed_);
    replaced = std::exchange(gate, made);
    // A request for an earlier version must not end the gate of the present
    // one.
    if (!IsHeld(table)) std::swap(gate, replaced);
    if (gate == nullptr) gates_.erase(name);
  }
  if (replaced != nullptr) replaced->Close(Replaced());
  return made;
}

void ClockServer::CloseReplaced() {
  std::vector<std::shared_ptr<ClockGate>> replaced;
  {
    const async::MutexLock lock(&mutex_);
    for (auto it = gates_.begin(); it != gates_.end();) {
      if (IsHeld(it->second->table())) {
        ++it;
        continue;
      }
      replaced.push_back(std::move(it->second));
      it = gates_.erase(it);
    }
  }
  for (const auto& gate : replaced) gate->Close(Replaced());
}

absl::StatusOr<std::shared_ptr<ClockGate>> ClockServer::Find(
    const std::string& table, int64_t version) {
  ASSIGN_OR_RETURN(const std::shared_ptr<LoggedTable> found,
                   tables_->Find(table, version));
  std::shared_ptr<ClockGate> gate = GateOf(found);
  if (gate != nullptr) return gate;
  return absl::FailedPreconditionError(
      absl::StrCat("table \"", table,
                   "\" is asynchronous and has no clock: create it with "
                   "another TableSpec::consistency"));
}

absl::StatusOr<v1::JoinClockReply> ClockServer::Join(
    const rpc::MethodCall& call, const v1::JoinClockRequest& request) {
  ASSIGN_OR_RETURN(const std::shared_ptr<ClockGate> gate,
                   Find(request.table(), request.version()));
  v1::JoinClockReply reply;
  ASSIGN_OR_RETURN(const int64_t clock, gate->Join(call, request));
  reply.set_clock(clock);
  return reply;
}

absl::Status ClockServer::Advance(const rpc::MethodCall& call,
                                  const v1::AdvanceClockRequest& request) {
  ASSIGN_OR_RETURN(const std::shared_ptr<ClockGate> gate,
                   Find(request.table(), request.version()));
  return gate->Advance(call, request);
}

async::Future<void> ClockServer::Leave(const rpc::MethodCall& call,
                                       const v1::LeaveClockRequest& request) {
  const absl::StatusOr<std::shared_ptr<ClockGate>> gate =
      Find(request.table(), request.version());
  if (!gate.ok()) return async::MakeReadyFuture<void>(gate.status());
  return (*gate)->Leave(call, request);
}

void ClockServer::Lose(rpc::Incarnation worker) {
  for (const std::shared_ptr<LoggedTable>& table : tables_->Tables()) {
    const std::shared_ptr<ClockGate> gate = GateOf(table);
    if (gate != nullptr) gate->Lose(worker);
  }
}

std::map<std::string, ClockNumbers> ClockServer::Numbers() {
  std::map<std::string, ClockNumbers> numbers;
  for (const std::shared_ptr<LoggedTable>& table : tables_->Tables()) {
    const std::shared_ptr<ClockGate> gate = GateOf(table);
    if (gate != nullptr) {
      numbers[table->table().spec().name] = gate->Numbers();
    }
  }
  return numbers;
}

void ClockServer::Interrupt() {
  std::vector<std::shared_ptr<ClockGate>> gates;
  const absl::Status status =
      absl::UnavailableError("the server is shutting down");
  {
    const async::MutexLock lock(&mutex_);
    closed_ = status;
    for (const auto& [name, gate] : gates_) gates.push_back(gate);
  }
  for (const auto& gate : gates) gate->Close(status);
}

void ClockServer::Stop() { host_->Revoke(); }

}  // namespace hawser::ps

#include "rref/testing/protocol_simulation.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "rref/wire_ids.h"

namespace hawser::rref {
namespace {

constexpr size_t kTombstones = 1024;

}  // namespace

ProtocolSimulation::Worker::Worker(rpc::WorkerRun worker_run)
    : run(worker_run),
      ids(run),
      owners(run, kTombstones, {}),
      users(run, kTombstones) {}

ProtocolSimulation::ProtocolSimulation(int num_workers, uint64_t seed)
    : random_(seed) {
  for (int i = 0; i < num_workers; ++i) {
    workers_.push_back(std::make_unique<Worker>(rpc::WorkerRun{
        rpc::WorkerId(i), rpc::Incarnation{++last_incarnation_}}));
  }
}

void ProtocolSimulation::Restart(int i) {
  ended_.push_back(RunOf(i));
  workers_[i] = std::make_unique<Worker>(
      rpc::WorkerRun{rpc::WorkerId(i), rpc::Incarnation{++last_incarnation_}});
  for (int k = 0; k < num_workers(); ++k) {
    if (k == i) continue;
    Post(RunOf(k), [this, k, lost = ended_.back()] { Lose(k, lost); });
  }
  // A late message may name one that was lost before.
  for (const rpc::WorkerRun lost : ended_) {
    Post(RunOf(i), [this, i, lost] { Lose(i, lost); });
  }
}

void ProtocolSimulation::Lose(int i, rpc::WorkerRun lost) {
  const absl::Status error = absl::UnavailableError("lost");
  Worker& w = *workers_[i];
  w.lost.insert(lost);
  w.receiver.Close(lost);
  w.sender.Close(lost);
  Do(i, w.owners.OnWorkerLost(lost, error));
  Do(i, w.users.OnWorkerLost(lost, error));
}

rpc::WorkerInfo ProtocolSimulation::InfoOf(rpc::WorkerRun run) {
  return {absl::StrCat("w", run.id.value()), run.id, run.incarnation, ""};
}

void ProtocolSimulation::AcceptChild(int i, rpc::WorkerRun parent,
                                     ForkId child) {
  v1::RRefControlOperation accept;
  *accept.mutable_child_accept()->mutable_fork() = ToProto(child);
  Send(i, parent, accept);
}

void ProtocolSimulation::RequestFork(int i, rpc::WorkerRun owner, RRefId rref,
                                     ForkId fork) {
  v1::RRefControlOperation request;
  *request.mutable_request_fork()->mutable_rref() = ToProto(rref);
  *request.mutable_request_fork()->mutable_fork() = ToProto(fork);
  Send(i, owner, request);
}

void ProtocolSimulation::RunToQuiescence() {
  for (int round = 0; round < 4; ++round) {
    while (!network_.empty()) DeliverOne();
    for (int i = 0; i < num_workers(); ++i) Audit(i);
  }
  while (!network_.empty()) DeliverOne();
}

void ProtocolSimulation::Do(int i, UserTable::Actions actions) {
  for (auto& [promise, status] : actions.completions) promise.Set(status);
  for (const UserTable::Message& message : actions.messages) {
    v1::RRefControlOperation operation;
    if (message.kind == UserTable::Message::Kind::kChildAccept) {
      *operation.mutable_child_accept()->mutable_fork() = ToProto(message.fork);
    } else {
      *operation.mutable_user_delete()->mutable_rref() = ToProto(message.rref);
      *operation.mutable_user_delete()->mutable_fork() = ToProto(message.fork);
      operation.mutable_user_delete()->set_creation_unacknowledged(
          message.kind == UserTable::Message::Kind::kWithdrawCreation);
    }
    Send(i, message.to, operation);
  }
}

void ProtocolSimulation::Do(int, OwnerTable::Actions actions) {
  for (auto& [value, error] : actions.failed) value->Set(error);
}

void ProtocolSimulation::Send(int i, rpc::WorkerRun to,
                              const v1::RRefControlOperation& operation) {
  workers_[i]->sender.Add(to, operation);
  Flush(i, to);
}

void ProtocolSimulation::Flush(int i, rpc::WorkerRun to) {
  if (auto batch = workers_[i]->sender.NextBatch(to)) {
    auto answered = std::make_shared<bool>(false);
    Attempt(i, to, *batch, answered);
  }
}

// Sends a batch, and sends it again at a random time if the attempt or its
// reply was lost. A receiver that has died is lost for the sender, some time.
void ProtocolSimulation::Attempt(int i, rpc::WorkerRun to,
                                 v1::RRefControlRequest batch,
                                 std::shared_ptr<bool> answered) {
  if (*answered || workers_[i]->lost.contains(to)) return;
  const auto again = [=, this, from = RunOf(i)] {
    Post(from, [=, this] { Attempt(i, to, batch, answered); });
  };
  const bool lost = Chance(0.2);
  if (lost || Chance(0.2)) again();
  if (lost) return;
  Post(to, [=, this, from = RunOf(i)] {
    Worker& receiver = *workers_[IndexOf(to)];
    UserTable::Actions users;
    OwnerTable::Actions owners;
    auto reply = receiver.receiver.Receive(
        from, batch, [&](const v1::RRefControlOperation& operation) {
          return Apply(IndexOf(to), from, operation, users, owners);
        });
    Do(IndexOf(to), std::move(users));
    Do(IndexOf(to), std::move(owners));
    if (!reply.ok()) {
      ASSERT_FALSE(Lives(from)) << reply.status();
      return;
    }
    if (!Lives(from)) return;
    if (Chance(0.2)) {  // The reply is lost.
      again();
      return;
    }
    Post(from, [=, this, reply = *reply] {
      if (std::exchange(*answered, true) || workers_[i]->lost.contains(to)) {
        return;
      }
      workers_[i]->sender.Finish(to);
      OnAnswer(i, to, batch, reply);
      Flush(i, to);
    });
  });
}

v1::RRefControlResult ProtocolSimulation::Apply(
    int i, rpc::WorkerRun from, const v1::RRefControlOperation& operation,
    UserTable::Actions& users, OwnerTable::Actions& owners) {
  Worker& w = *workers_[i];
  v1::RRefControlResult result;
  if (operation.has_request_fork()) {
    const ForkId fork{FromProto(operation.request_fork().fork())};
    const absl::Status status = w.owners.RequestFork(
        RRefId{FromProto(operation.request_fork().rref())}, fork, InfoOf(from));
    result.set_code(static_cast<int>(status.code()));
    // A worker that died before its own copy was confirmed may have given it,
    // or the copy from which it descends.
    EXPECT_TRUE(status.ok() || !ended_.empty())
        << "a copy came too late (G2): " << status;
  } else if (operation.has_child_accept()) {
    users.Append(w.users.AcceptChild(
        ForkId{FromProto(operation.child_accept().fork())}, from));
  } else if (operation.has_user_delete()) {
    const RRefId rref{FromProto(operation.user_delete().rref())};
    const ForkId fork{FromProto(operation.user_delete().fork())};
    owners.Append(operation.user_delete().creation_unacknowledged()
                      ? w.owners.WithdrawCreation(rref, fork)
                      : w.owners.RemoveFork(rref, fork, from));
  } else {
    result.set_known(
        w.users.Withdraw(ForkId{FromProto(operation.withdraw_fork().fork())}));
  }
  return result;
}

void ProtocolSimulation::OnAnswer(int i, rpc::WorkerRun from,
                                  const v1::RRefControlRequest& batch,
                                  const v1::RRefControlReply& reply) {
  ASSERT_EQ(batch.operations_size(), reply.results_size());
  for (int k = 0; k < batch.operations_size(); ++k) {
    const v1::RRefControlOperation& operation = batch.operations(k);
    if (operation.has_request_fork()) {
      Do(i, workers_[i]->users.FinishRequest(
                ForkId{FromProto(operation.request_fork().fork())},
                absl::Status(
                    static_cast<absl::StatusCode>(reply.results(k).code()),
                    "fork request")));
    } else if (operation.has_withdraw_fork()) {
      const RRefId rref{FromProto(operation.withdraw_fork().rref())};
      const ForkId fork{FromProto(operation.withdraw_fork().fork())};
      if (reply.results(k).known()) {
        workers_[i]->owners.AcknowledgeShare(rref, fork, from);
      } else {
        Do(i, workers_[i]->owners.RemoveFork(rref, fork, from));
        Do(i, workers_[i]->users.AcceptChild(fork, from));
      }
    }
  }
}

void ProtocolSimulation::Post(rpc::WorkerRun run, std::function<void()> event) {
  network_.push_back({run, std::move(event)});
}

void ProtocolSimulation::DeliverOne() {
  if (network_.empty()) return;
  const size_t i = Below(network_.size());
  const Event event = std::move(network_[i]);
  network_.erase(network_.begin() + i);
  if (Lives(event.run)) event.action();
}

void ProtocolSimulation::Audit(int i) {
  Worker& w = *workers_[i];
  auto ask = [&](rpc::WorkerRun to, RRefId rref, ForkId fork) {
    v1::RRefControlOperation operation;
    *operation.mutable_withdraw_fork()->mutable_rref() = ToProto(rref);
    *operation.mutable_withdraw_fork()->mutable_fork() = ToProto(fork);
    Send(i, to, operation);
  };
  for (const auto& share : w.owners.TakeStaleShares()) {
    ask(share.holder, share.rref, share.fork);
  }
  for (const auto& child : w.users.TakeStaleChildren()) {
    ask(child.to, child.rref, child.fork);
  }
}

}  // namespace hawser::rref

// Several workers' tables and control channels, joined by a network that drops,
// repeats and reorders, under random creations, shares and releases. Checked
// after each step: no value is gone that a confirmed copy refers to. Checked at
// the end: nothing is left.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "async/random_source.h"
#include "gtest/gtest.h"
#include "rpc/retained_value.h"
#include "rpc/types.h"
#include "rref/control_channel.h"
#include "rref/ids.h"
#include "rref/owner_table.h"
#include "rref/user_table.h"

namespace hawser::rref {
namespace {

constexpr int kWorkers = 4;
constexpr size_t kTombstones = 1024;
constexpr uint64_t kSeedsPerCase = 25;

v1::GlobalId ToProto(const GlobalId& id) {
  v1::GlobalId proto;
  proto.mutable_maker()->set_worker(id.maker.worker);
  proto.mutable_maker()->set_incarnation(id.maker.incarnation);
  proto.set_number(id.number);
  return proto;
}

GlobalId FromProto(const v1::GlobalId& id) {
  return {{id.maker().worker(), id.maker().incarnation()}, id.number()};
}

// A copy of a reference that some application code holds.
struct Handle {
  int worker;
  RRefId rref;
  ForkId fork;
  WorkerRun owner;
  // At the owner.
  std::shared_ptr<OwnerValue> value;
  async::Future<void> confirmed;
};

class Model {
 public:
  explicit Model(uint64_t seed) : random_(seed) {
    for (int i = 0; i < kWorkers; ++i) {
      workers_.push_back(std::make_unique<Worker>(Run(i)));
    }
  }

  void Play(int steps) {
    for (int i = 0; i < steps; ++i) {
      Act();
      DeliverOne();
      CheckNothingFreedEarly();
      if (testing::Test::HasFatalFailure()) return;
    }
    ending_ = true;
    while (!handles_.empty()) {
      ReleaseOne();
      DeliverOne();
      CheckNothingFreedEarly();
      if (testing::Test::HasFatalFailure()) return;
    }
    // Messages that never arrive are found out by the audits.
    for (int round = 0; round < 4; ++round) {
      while (!network_.empty()) DeliverOne();
      for (int i = 0; i < kWorkers; ++i) Audit(i);
    }
    while (!network_.empty()) DeliverOne();
    for (int i = 0; i < kWorkers; ++i) {
      const Worker& w = *workers_[i];
      EXPECT_EQ(w.owners.counts().owners, 0u) << "worker " << i;
      EXPECT_EQ(w.owners.counts().forks, 0u) << "worker " << i;
      EXPECT_EQ(w.users.counts().users, 0u) << "worker " << i;
      EXPECT_EQ(w.users.counts().pending_children, 0u) << "worker " << i;
      EXPECT_EQ(w.sender.pending(), 0u) << "worker " << i;
    }
    for (const auto& [rref, value] : values_) {
      EXPECT_TRUE(value.expired()) << rref.ToString();
    }
  }

 private:
  struct Worker {
    explicit Worker(WorkerRun run)
        : ids(run), owners(run, kTombstones, {}), users(run, kTombstones) {}
    IdSource ids;
    OwnerTable owners;
    UserTable users;
    ControlSender sender;
    ControlReceiver receiver;
  };

  static WorkerRun Run(int i) { return {i, 100u + static_cast<uint64_t>(i)}; }
  static rpc::WorkerInfo InfoOf(WorkerRun run) {
    return {absl::StrCat("w", run.worker), rpc::WorkerId(run.worker),
            rpc::Incarnation{run.incarnation}, ""};
  }
  static int IndexOf(WorkerRun run) { return run.worker; }

  bool Chance(double p) { return random_.Uniform() < p; }
  size_t Below(size_t n) { return random_.Next() % n; }

  void Act() {
    const double choice = random_.Uniform();
    if (choice < 0.15) {
      MakeLocal(static_cast<int>(Below(kWorkers)));
    } else if (choice < 0.35) {
      Create(static_cast<int>(Below(kWorkers)),
             static_cast<int>(Below(kWorkers)));
    } else if (choice < 0.65 && !handles_.empty()) {
      Share(handles_[Below(handles_.size())],
            static_cast<int>(Below(kWorkers)));
    } else if (choice < 0.85) {
      ReleaseOne();
    } else if (choice < 0.9) {
      Audit(static_cast<int>(Below(kWorkers)));
    }
  }

  void MakeLocal(int i) {
    auto value = std::make_shared<OwnerValue>(rpc::Retain<int64_t>(1));
    const RRefId rref = workers_[i]->ids.NextRRefId();
    values_[rref] = value;
    AddOwnerHandle(i, rref, value);
  }

  void AddOwnerHandle(int i, RRefId rref, std::shared_ptr<OwnerValue> value) {
    handles_.push_back({i, rref, ForkId{rref}, Run(i), std::move(value),
                        async::MakeReadyFuture<void>(absl::OkStatus())});
  }

  void Create(int from, int to) {
    if (from == to) return;
    Worker& creator = *workers_[from];
    const RRefId rref = creator.ids.NextRRefId();
    const ForkId fork = creator.ids.NextForkId();
    async::Future<void> confirmed =
        creator.users.StartCreation(rref, fork, Run(to));
    handles_.push_back({from, rref, fork, Run(to), nullptr, confirmed});
    auto finish = [this, from, fork](absl::Status status) {
      Do(from, workers_[from]->users.FinishCreation(fork, status));
    };
    if (Chance(0.1)) {
      // The caller gives up although the message may yet arrive.
      Post([finish] { finish(absl::DeadlineExceededError("creation")); });
    }
    if (Chance(0.1)) {
      Post([finish] { finish(absl::UnavailableError("lost request")); });
      return;
    }
    Post([this, from, to, rref, fork, finish] {
      auto value = workers_[to]->owners.Create(rref, fork, InfoOf(Run(from)));
      if (!value.ok()) {
        EXPECT_EQ(value.status().code(), absl::StatusCode::kAborted);
        Post([finish, status = value.status()] { finish(status); });
        return;
      }
      values_[rref] = *value;
      (*value)->Set(rpc::Retain<int64_t>(2));
      const bool reply_lost = Chance(0.1);
      Post([finish, reply_lost] {
        finish(reply_lost ? absl::UnavailableError("lost reply")
                          : absl::OkStatus());
      });
    });
  }

  void Share(const Handle& handle, int to) {
    Worker& sender = *workers_[handle.worker];
    const ForkId fork = sender.ids.NextForkId();
    if (handle.value != nullptr) {
      if (!sender.owners.Share(handle.rref, fork, InfoOf(Run(to)), handle.value)
               .ok()) {
        return;
      }
    } else if (!sender.users.AddChild(handle.fork, fork, Run(to)).ok()) {
      return;
    }
    if (Chance(0.1)) return;  // The call is lost.
    Post([this, from = handle.worker, to, rref = handle.rref, fork,
          owner = handle.owner] { Receive(from, to, rref, fork, owner); });
  }

  void Receive(int from, int to, RRefId rref, ForkId fork, WorkerRun owner) {
    Worker& receiver = *workers_[to];
    if (owner == Run(to)) {
      if (receiver.users.IsWithdrawn(fork)) return;
      auto value = receiver.owners.Find(rref, InfoOf(Run(from)));
      if (!value.ok()) return;
      if (!ending_) AddOwnerHandle(to, rref, *value);
      if (from == to) {
        Do(to, receiver.owners.RemoveFork(rref, fork));
      } else {
        v1::RRefControlOperation accept;
        *accept.mutable_child_accept()->mutable_fork() = ToProto(fork);
        Send(to, Run(from), accept);
      }
      return;
    }
    auto received = receiver.users.Receive(rref, fork, owner, Run(from));
    if (!received.ok()) return;
    if (ending_) {
      Do(to, receiver.users.Release(fork));
    } else {
      handles_.push_back({to, rref, fork, owner, nullptr, received->confirmed});
    }
    if (received->request_owner) {
      v1::RRefControlOperation request;
      *request.mutable_request_fork()->mutable_rref() = ToProto(rref);
      *request.mutable_request_fork()->mutable_fork() = ToProto(fork);
      Send(to, owner, request);
    }
  }

  void ReleaseOne() {
    if (handles_.empty()) return;
    const size_t i = Below(handles_.size());
    Handle handle = std::move(handles_[i]);
    handles_.erase(handles_.begin() + i);
    if (handle.value == nullptr) {
      Do(handle.worker, workers_[handle.worker]->users.Release(handle.fork));
    }
  }

  void Audit(int i) {
    Worker& w = *workers_[i];
    auto ask = [&](WorkerRun to, RRefId rref, ForkId fork) {
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

  void Do(int i, UserTable::Effects effects) {
    for (auto& [promise, status] : effects.completions) promise.Set(status);
    for (const UserTable::Message& message : effects.messages) {
      v1::RRefControlOperation operation;
      if (message.kind == UserTable::Message::Kind::kChildAccept) {
        *operation.mutable_child_accept()->mutable_fork() =
            ToProto(message.fork);
      } else {
        *operation.mutable_user_delete()->mutable_rref() =
            ToProto(message.rref);
        *operation.mutable_user_delete()->mutable_fork() =
            ToProto(message.fork);
        operation.mutable_user_delete()->set_creation_unacknowledged(
            message.kind == UserTable::Message::Kind::kWithdrawCreation);
      }
      Send(i, message.to, operation);
    }
  }

  void Do(int, OwnerTable::Effects effects) {
    for (auto& [value, error] : effects.failed) value->Set(error);
  }

  void Send(int i, WorkerRun to, const v1::RRefControlOperation& operation) {
    workers_[i]->sender.Add(to, operation);
    Flush(i, to);
  }

  void Flush(int i, WorkerRun to) {
    if (auto batch = workers_[i]->sender.NextBatch(to)) {
      auto answered = std::make_shared<bool>(false);
      Attempt(i, to, *batch, answered);
    }
  }

  // Sends the batch; at the latest when the attempt was lost, again.
  void Attempt(int i, WorkerRun to, v1::RRefControlRequest batch,
               std::shared_ptr<bool> answered) {
    if (*answered) return;
    const bool lost = Chance(0.2);
    if (lost || Chance(0.2)) {
      Post([=, this] { Attempt(i, to, batch, answered); });
    }
    if (lost) return;
    Post([=, this] {
      Worker& receiver = *workers_[IndexOf(to)];
      UserTable::Effects users;
      OwnerTable::Effects owners;
      auto reply = receiver.receiver.Receive(
          Run(i), batch, [&](const v1::RRefControlOperation& operation) {
            return Apply(IndexOf(to), Run(i), operation, users, owners);
          });
      ASSERT_TRUE(reply.ok()) << reply.status();
      Do(IndexOf(to), std::move(users));
      Do(IndexOf(to), std::move(owners));
      if (Chance(0.2)) {  // The reply is lost.
        Post([=, this] { Attempt(i, to, batch, answered); });
        return;
      }
      Post([=, this, reply = *reply] {
        if (std::exchange(*answered, true)) return;
        workers_[i]->sender.Finish(to);
        OnAnswer(i, batch, reply);
        Flush(i, to);
      });
    });
  }

  v1::RRefControlResult Apply(int i, WorkerRun from,
                              const v1::RRefControlOperation& operation,
                              UserTable::Effects& users,
                              OwnerTable::Effects& owners) {
    Worker& w = *workers_[i];
    v1::RRefControlResult result;
    if (operation.has_request_fork()) {
      result.set_code(static_cast<int>(
          w.owners
              .RequestFork(RRefId{FromProto(operation.request_fork().rref())},
                           ForkId{FromProto(operation.request_fork().fork())},
                           InfoOf(from))
              .code()));
      EXPECT_EQ(result.code(), 0) << "a copy came too late (G2)";
    } else if (operation.has_child_accept()) {
      users.Append(w.users.AcceptChild(
          ForkId{FromProto(operation.child_accept().fork())}));
    } else if (operation.has_user_delete()) {
      const RRefId rref{FromProto(operation.user_delete().rref())};
      const ForkId fork{FromProto(operation.user_delete().fork())};
      owners.Append(operation.user_delete().creation_unacknowledged()
                        ? w.owners.WithdrawCreation(rref, fork)
                        : w.owners.RemoveFork(rref, fork));
    } else {
      result.set_known(w.users.Withdraw(
          ForkId{FromProto(operation.withdraw_fork().fork())}));
    }
    return result;
  }

  void OnAnswer(int i, const v1::RRefControlRequest& batch,
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
          workers_[i]->owners.AcknowledgeShare(rref, fork);
        } else {
          Do(i, workers_[i]->owners.RemoveFork(rref, fork));
          Do(i, workers_[i]->users.AcceptChild(fork));
        }
      }
    }
  }

  void Post(std::function<void()> event) {
    network_.push_back(std::move(event));
  }

  void DeliverOne() {
    if (network_.empty()) return;
    const size_t i = Below(network_.size());
    std::function<void()> event = std::move(network_[i]);
    network_.erase(network_.begin() + i);
    event();
  }

  void CheckNothingFreedEarly() {
    for (const Handle& handle : handles_) {
      if (handle.value != nullptr || !handle.confirmed.ready() ||
          !handle.confirmed.result().ok()) {
        continue;
      }
      ASSERT_TRUE(workers_[handle.worker]->users.Check(handle.fork).ok());
      // A copy may be confirmed before the creation arrives at the owner; and
      // its creation may fail after that.
      auto value = values_.find(handle.rref);
      if (value == values_.end()) continue;
      ASSERT_FALSE(value->second.expired())
          << "reference " << handle.rref.ToString() << " of worker "
          << handle.worker << " outlived its value";
    }
  }

  async::RandomSource random_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::function<void()>> network_;
  std::vector<Handle> handles_;
  // No handle is made any more.
  bool ending_ = false;
  std::map<RRefId, std::weak_ptr<OwnerValue>> values_;
};

class TablesModelTest : public testing::TestWithParam<uint64_t> {};

TEST_P(TablesModelTest, NothingIsFreedEarlyAndEverythingInTheEnd) {
  for (uint64_t seed = 0; seed < kSeedsPerCase; ++seed) {
    SCOPED_TRACE(testing::Message()
                 << "seed " << GetParam() * kSeedsPerCase + seed);
    Model(GetParam() * kSeedsPerCase + seed).Play(300);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, TablesModelTest,
                         testing::Range<uint64_t>(0, HAWSER_MODEL_SEEDS /
                                                         kSeedsPerCase));

}  // namespace
}  // namespace hawser::rref

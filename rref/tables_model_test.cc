// Tables and control channels of several workers under random creations, shares
// and releases. Their network drops, repeats and reorders messages, and in
// every second run workers die and are restarted. Checked after each step: no
// value has ended to which a confirmed copy refers, of workers that live.
// Checked at the end: all tables are empty.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "async/future.h"
#include "async/testing/nightly.h"
#include "gtest/gtest.h"
#include "rpc/functions/erased_value.h"
#include "rref/ids.h"
#include "rref/owner_value.h"
#include "rref/testing/protocol_simulation.h"

namespace hawser::rref {
namespace {

constexpr int kWorkers = 4;
constexpr uint64_t kSeedsPerCase = 25;

// A copy of a reference held by application code.
struct Handle {
  int worker;
  RRefId rref;
  ForkId fork;
  rpc::WorkerRun owner;
  // The run of `worker` that holds it.
  rpc::WorkerRun holder;
  // Set at the owner.
  std::shared_ptr<OwnerValue> value;
  async::Future<void> confirmed;
};

class Model {
 public:
  explicit Model(uint64_t seed)
      : simulation_(kWorkers, seed), workers_die_(seed % 2 == 1) {}

  void Play(int steps) {
    for (int i = 0; i < steps; ++i) {
      Act();
      simulation_.DeliverOne();
      CheckNothingFreedEarly();
      if (testing::Test::HasFatalFailure()) return;
    }
    ending_ = true;
    while (!handles_.empty()) {
      ReleaseOne();
      simulation_.DeliverOne();
      CheckNothingFreedEarly();
      if (testing::Test::HasFatalFailure()) return;
    }
    simulation_.RunToQuiescence();
    for (int i = 0; i < kWorkers; ++i) {
      const Worker& w = simulation_.worker(i);
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
  using Worker = ProtocolSimulation::Worker;

  rpc::WorkerRun Run(int i) const { return simulation_.RunOf(i); }
  bool Chance(double p) { return simulation_.Chance(p); }
  size_t Below(size_t n) { return simulation_.Below(n); }
  int AnyWorker() { return static_cast<int>(Below(kWorkers)); }

  void Act() {
    const double choice = simulation_.Uniform();
    if (choice < 0.15) {
      MakeLocal(AnyWorker());
    } else if (choice < 0.35) {
      Create(AnyWorker(), AnyWorker());
    } else if (choice < 0.65 && !handles_.empty()) {
      Share(handles_[Below(handles_.size())], AnyWorker());
    } else if (choice < 0.85) {
      ReleaseOne();
    } else if (choice < 0.9) {
      simulation_.Audit(AnyWorker());
    } else if (choice < 0.92 && workers_die_) {
      Restart(AnyWorker());
    }
  }

  void Restart(int i) {
    std::erase_if(handles_,
                  [i](const Handle& handle) { return handle.worker == i; });
    const rpc::WorkerRun ended = Run(i);
    simulation_.Restart(i);
    for (const auto& [owner, finish] : calls_) {
      if (owner == ended) finish(absl::UnavailableError("lost"));
    }
  }

  void MakeLocal(int i) {
    auto value = std::make_shared<OwnerValue>(rpc::Erase<int64_t>(1));
    const RRefId rref = simulation_.worker(i).ids.NextRRefId();
    values_[rref] = value;
    AddOwnerHandle(i, rref, value);
  }

  void AddOwnerHandle(int i, RRefId rref, std::shared_ptr<OwnerValue> value) {
    handles_.push_back({i, rref, ForkId{rref}, Run(i), Run(i), std::move(value),
                        async::MakeReadyFuture<void>(absl::OkStatus())});
  }

  void Create(int from, int to) {
    if (from == to) return;
    Worker& creator = simulation_.worker(from);
    const RRefId rref = creator.ids.NextRRefId();
    const ForkId fork = creator.ids.NextForkId();
    async::Future<void> confirmed =
        creator.users.StartCreation(rref, fork, Run(to));
    const rpc::WorkerRun caller = Run(from);
    const rpc::WorkerRun owner = Run(to);
    handles_.push_back({from, rref, fork, owner, caller, nullptr, confirmed});
    const auto finish = [this, from, caller, fork](const absl::Status& status) {
      simulation_.Post(caller, [this, from, fork, status] {
        simulation_.Do(
            from, simulation_.worker(from).users.FinishCreation(fork, status));
      });
    };
    if (Chance(0.1)) {
      // The caller times out although the message may still arrive.
      finish(absl::DeadlineExceededError("creation"));
    }
    if (Chance(0.1)) {
      finish(absl::UnavailableError("lost request"));
      return;
    }
    simulation_.Post(owner, [this, to, caller, rref, fork, finish] {
      auto value = simulation_.worker(to).owners.Create(
          rref, fork, ProtocolSimulation::InfoOf(caller));
      if (!value.ok()) {
        EXPECT_EQ(value.status().code(), absl::StatusCode::kAborted);
        finish(value.status());
        return;
      }
      values_[rref] = *value;
      (*value)->Set(rpc::Erase<int64_t>(2));
      finish(Chance(0.1) ? absl::UnavailableError("lost reply")
                         : absl::OkStatus());
    });
    // If the owner dies before that, the call ends with its loss.
    if (workers_die_) calls_.push_back({owner, finish});
  }

  void Share(const Handle& handle, int to) {
    Worker& sender = simulation_.worker(handle.worker);
    const ForkId fork = sender.ids.NextForkId();
    if (handle.value != nullptr) {
      if (!sender.owners
               .Share(handle.rref, fork, ProtocolSimulation::InfoOf(Run(to)),
                      handle.value)
               .ok()) {
        return;
      }
    } else if (!sender.users.AddChild(handle.fork, fork, Run(to)).ok()) {
      return;
    }
    if (Chance(0.1)) return;  // The call is lost.
    simulation_.Post(Run(to), [this, from = handle.holder, to,
                               rref = handle.rref, fork, owner = handle.owner] {
      Receive(from, to, rref, fork, owner);
    });
  }

  void Receive(rpc::WorkerRun from, int to, RRefId rref, ForkId fork,
               rpc::WorkerRun owner) {
    Worker& receiver = simulation_.worker(to);
    if (owner == Run(to)) {
      if (receiver.users.IsWithdrawn(fork)) return;
      auto value = receiver.owners.Find(rref, ProtocolSimulation::InfoOf(from));
      if (!value.ok()) return;
      if (!ending_) AddOwnerHandle(to, rref, *value);
      if (from == Run(to)) {
        simulation_.Do(to, receiver.owners.RemoveFork(rref, fork, Run(to)));
      } else {
        simulation_.AcceptChild(to, from, fork);
      }
      return;
    }
    auto received = receiver.users.Receive(rref, fork, owner, from);
    if (!received.ok()) return;
    if (ending_) {
      simulation_.Do(to, receiver.users.Release(fork));
    } else {
      handles_.push_back(
          {to, rref, fork, owner, Run(to), nullptr, received->confirmed});
    }
    if (received->request_owner) {
      simulation_.RequestFork(to, owner, rref, fork);
    }
  }

  void ReleaseOne() {
    if (handles_.empty()) return;
    const size_t i = Below(handles_.size());
    Handle handle = std::move(handles_[i]);
    handles_.erase(handles_.begin() + i);
    if (handle.value == nullptr) {
      simulation_.Do(
          handle.worker,
          simulation_.worker(handle.worker).users.Release(handle.fork));
    }
  }

  void CheckNothingFreedEarly() {
    for (const Handle& handle : handles_) {
      if (handle.value != nullptr || !handle.confirmed.ready() ||
          !handle.confirmed.result().ok() || !simulation_.Lives(handle.owner)) {
        continue;
      }
      ASSERT_TRUE(
          simulation_.worker(handle.worker).users.Check(handle.fork).ok());
      // A copy may be confirmed before the creation arrives at the owner, and
      // the creation may fail after that.
      auto value = values_.find(handle.rref);
      if (value == values_.end()) continue;
      ASSERT_FALSE(value->second.expired())
          << "reference " << handle.rref.ToString() << " of worker "
          << handle.worker << " outlived its value";
    }
  }

  ProtocolSimulation simulation_;
  const bool workers_die_;
  // Creations, with the owner on which each depends; some have ended.
  std::vector<
      std::pair<rpc::WorkerRun, std::function<void(const absl::Status&)>>>
      calls_;
  std::vector<Handle> handles_;
  // New handles are not created any more.
  bool ending_ = false;
  std::map<RRefId, std::weak_ptr<OwnerValue>> values_;
};

class TablesModelTest : public testing::TestWithParam<uint64_t> {};

TEST_P(TablesModelTest, ValuesAreFreedOnlyWithoutCopiesAndAllAtTheEnd) {
  for (uint64_t seed = 0; seed < kSeedsPerCase; ++seed) {
    SCOPED_TRACE(testing::Message()
                 << "seed " << GetParam() * kSeedsPerCase + seed);
    Model(GetParam() * kSeedsPerCase + seed).Play(300);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Seeds, TablesModelTest,
    testing::Range<uint64_t>(0, async::NightlyOr(20'000, 400) / kSeedsPerCase));

}  // namespace
}  // namespace hawser::rref

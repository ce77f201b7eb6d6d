// References under seeded random faults, checked against the guarantees of
// docs/rref.md. To repeat one seed: rpc/testing/simulation_seeds.h.

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/current_call.h"
#include "rpc/testing/cluster_simulation.h"
#include "rpc/testing/simulation_seeds.h"
#include "rref/rref.h"
#include "rref/rref_service.h"

namespace hawser::rref {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

class Resources;

// Cannot be encoded. Reports its destruction.
class Resource {
 public:
  static constexpr std::string_view kTypeName = "test.Resource";

  Resource(Resources* all, int64_t number) : all_(all), number_(number) {}
  Resource(Resource&& other) noexcept
      : all_(std::exchange(other.all_, nullptr)), number_(other.number_) {}
  ~Resource();

  int64_t number() const { return number_; }

 private:
  Resources* all_;
  const int64_t number_;
};

// The existing resources, by number.
class Resources {
 public:
  virtual ~Resources() = default;
  virtual void OnEnd(int64_t number) = 0;
};

Resource::~Resource() {
  if (all_ != nullptr) all_->OnEnd(number_);
}

constexpr rpc::Function<Resource(int64_t)> kMake{"test.Make"};
constexpr rpc::Function<void(RRef<Resource>)> kKeep{"test.Keep"};
// Returns one of the references that the worker keeps; empty if it keeps none.
constexpr rpc::Function<std::vector<RRef<Resource>>()> kGive{"test.Give"};
// Returns the number of a resource. Runs at the owner.
constexpr rpc::Function<int64_t(RRef<Resource>)> kRead{"test.Read"};
constexpr int kSteps = 25;
constexpr absl::Duration kAudit = absl::Seconds(5);

// A handle that a worker keeps.
struct Held {
  int worker;
  rpc::Incarnation holder;
  RRef<Resource> rref;
};

class ReferenceSimulation final : private Resources {
 public:
  ReferenceSimulation(uint64_t seed, bool verbose)
      : job_(seed,
             {.verbose = verbose,
              .configure =
                  [](rpc::AgentOptions& options) {
                    // The other workers go on when one leaves.
                    options.services.push_back(std::make_unique<RRefService>(
                        RRefOptions{.audit_interval = kAudit,
                                    .wait_for_users = false}));
                  },
              .on_end =
                  [this](const rpc::WorkerInfo& worker) {
                    ended_.insert(worker.incarnation);
                  }}) {
    rpc::FunctionRegistry& registry = job_.registry();
    EXPECT_THAT(registry.Register(
                    kMake, [this](int64_t number) { return Make(number); }),
                IsOk());
    EXPECT_THAT(registry.Register(kKeep,
                                  [this](RRef<Resource> rref) {
                                    Keep(rpc::CurrentCall::Get()->agent(),
                                         std::move(rref));
                                  }),
                IsOk());
    EXPECT_THAT(registry.Register(kGive, [this] { return Give(); }), IsOk());
    EXPECT_THAT(registry.Register(
                    kRead,
                    [](RRef<Resource> rref) {
                      return rref.LocalValueAsync().Then(
                          [](absl::StatusOr<std::shared_ptr<Resource>> value)
                              -> absl::StatusOr<int64_t> {
                            if (!value.ok()) return value.status();
                            return (*value)->number();
                          });
                    }),
                IsOk());
  }

  std::string Run() {
    job_.RestartDeparted();
    for (int step = 0; step < kSteps; ++step) {
      job_.RandomFault();
      for (int i = 0; i < 4; ++i) RandomAction();
      job_.Advance(absl::Milliseconds(job_.random().Below(1500)));
      ForgetTheEnded();
    }
    job_.ExpectConvergence();
    // Calls end, and all messages are handled.
    job_.Advance(absl::Seconds(10) + 2 * kAudit);
    ForgetTheEnded();
    if (job_.failure().empty()) CheckThatTheHeldLive();
    DropAll();
    job_.Advance(absl::Seconds(5) + 2 * kAudit);
    if (job_.failure().empty()) CheckThatNothingIsLeft();
    return job_.failure();
  }

 private:
  Resource Make(int64_t number) {
    if (!live_.insert(number).second) {
      job_.Fail(absl::StrCat("value ", number, " was created twice"));
    }
    return Resource(this, number);
  }

  // G2, unless one of the workers considers the other lost or the owner leaves.
  void OnEnd(int64_t number) override {
    live_.erase(number);
    job_.Note(absl::StrCat("value ", number, " ends"));
    for (const Held& held : held_) {
      if (NumberOf(held.rref) != number || !held.rref.confirmed() ||
          !LivesOn(held)) {
        continue;
      }
      rpc::Agent* const owner = OwnerOf(held.rref);
      rpc::Agent* const holder = job_.agent(held.worker);
      if (owner == nullptr || job_.leaving(owner->info().id.value()) ||
          owner->IsLost(holder->info()) || holder->IsLost(owner->info())) {
        continue;
      }
      job_.Fail(absl::StrCat("value ", number, " ended while w", held.worker,
                             " held it"));
    }
  }

  int64_t NumberOf(const RRef<Resource>& rref) { return numbers_[rref.id()]; }

  // Whether the holder runs and keeps its references.
  bool LivesOn(const Held& held) {
    rpc::Agent* const agent = job_.agent(held.worker);
    return agent != nullptr && agent->info().incarnation == held.holder &&
           !ended_.contains(held.holder) && !job_.leaving(held.worker);
  }

  // Returns null unless it runs and was not told to leave.
  rpc::Agent* OwnerOf(const RRef<Resource>& rref) {
    for (int i = 0; i < job_.num_workers(); ++i) {
      rpc::Agent* const agent = job_.agent(i);
      if (agent == nullptr || agent->info() != rref.owner()) continue;
      return ended_.contains(agent->info().incarnation) ? nullptr : agent;
    }
    return nullptr;
  }

  void Keep(rpc::Agent& agent, RRef<Resource> rref) {
    const rpc::WorkerInfo& self = agent.info();
    if (ended_.contains(self.incarnation)) return;
    held_.push_back({self.id.value(), self.incarnation, std::move(rref)});
  }

  std::vector<RRef<Resource>> Give() {
    const rpc::Incarnation self =
        rpc::CurrentCall::Get()->agent().info().incarnation;
    for (const Held& held : held_) {
      if (held.holder == self) return {held.rref};
    }
    return {};
  }

  // Drops the handles of ended processes. Destroying a handle may call back, so
  // it must no longer be in the list.
  void ForgetTheEnded() {
    const auto ended = std::partition(
        held_.begin(), held_.end(),
        [this](const Held& held) { return !ended_.contains(held.holder); });
    const std::vector<Held> forgotten(ended, held_.end());
    held_.erase(ended, held_.end());
  }

  void DropAll() {
    std::vector<Held> dropped;
    dropped.swap(held_);
  }

  void RandomAction() {
    async::RandomSource& random = job_.random();
    const int from = static_cast<int>(random.Below(job_.num_workers()));
    const std::string to = absl::StrCat("w", random.Below(job_.num_workers()));
    const rpc::CallOptions options{
        .timeout = absl::Milliseconds(200 + random.Below(4000))};
    rpc::Agent* const agent = job_.agent(from);
    if (agent == nullptr) return;
    switch (random.Below(8)) {
      case 0:
      case 1: {
        const int64_t number = ++last_number_;
        absl::StatusOr<RRef<Resource>> made =
            Remote(*agent, to, options, kMake, number);
        if (!made.ok()) break;
        numbers_[made->id()] = number;
        job_.Note(absl::StrCat("value ", number, " of w", from, " at ", to));
        Keep(*agent, *std::move(made));
        break;
      }
      case 2:
      case 3:
        agent->Async(to, options, kGive)
            .OnReady(
                [this, agent](
                    const absl::StatusOr<std::vector<RRef<Resource>>>& given) {
                  if (!given.ok()) return;
                  for (const RRef<Resource>& rref : *given) Keep(*agent, rref);
                });
        break;
      default:
        UseRandomly(options);
        break;
    }
  }

  void UseRandomly(const rpc::CallOptions& options) {
    if (held_.empty()) return;
    async::RandomSource& random = job_.random();
    const size_t index = random.Below(held_.size());
    const std::string to = absl::StrCat("w", random.Below(job_.num_workers()));
    const Held held = held_[index];
    rpc::Agent* const agent = job_.agent(held.worker);
    if (agent == nullptr || agent->info().incarnation != held.holder) return;
    switch (random.Below(4)) {
      case 0:
        (void)agent->Async(to, options, kKeep, held.rref);
        break;
      case 1:
        (void)Read(*agent, held.rref, options);
        break;
      default:
        job_.Note(absl::StrCat("w", held.worker, " drops value ",
                               NumberOf(held.rref)));
        held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(index));
        break;
    }
  }

  async::Future<int64_t> Read(rpc::Agent& agent, const RRef<Resource>& rref,
                              const rpc::CallOptions& options) {
    async::Future<int64_t> read =
        agent.Async(rref.owner(), options, kRead, rref);
    read.OnReady([this, number = NumberOf(rref)](
                     const absl::StatusOr<int64_t>& value) {
      if (value.ok() && *value != number) {
        job_.Fail(absl::StrCat("got value ", *value, " instead of ", number));
      }
    });
    return read;
  }

  void CheckThatTheHeldLive() {
    std::vector<std::pair<std::string, async::Future<int64_t>>> reads;
    for (const Held& held : held_) {
      const std::string what = absl::StrCat("value ", NumberOf(held.rref),
                                            " held by w", held.worker);
      if (!held.rref.WhenConfirmed().ready()) {
        job_.Fail(absl::StrCat(what, " is neither confirmed nor refused"));
      } else if (held.rref.confirmed() && OwnerOf(held.rref) != nullptr) {
        reads.emplace_back(what, Read(*job_.agent(held.worker), held.rref,
                                      {.timeout = absl::Seconds(2)}));
      }
    }
    job_.Advance(absl::Seconds(3));
    for (const auto& [what, read] : reads) {
      if (!read.ready()) {
        job_.Fail(absl::StrCat(what, " was not read"));
      } else if (!read.result().ok()) {
        job_.Fail(absl::StrCat(what, ": ", read.result().status().ToString()));
      }
    }
  }

  // G5.
  void CheckThatNothingIsLeft() {
    for (const int64_t number : live_) {
      job_.Fail(absl::StrCat("value ", number, " still exists"));
    }
    for (int i = 0; i < job_.num_workers(); ++i) {
      const Protocol::Counts counts =
          job_.agent(i)->service<RRefService>()->protocol()->counts();
      if (counts.owner.owners + counts.owner.forks + counts.user.users +
              counts.user.pending_children + counts.control_operations >
          0) {
        job_.Fail(absl::StrCat(
            "w", i, " has ", counts.owner.owners, " owner entries, ",
            counts.owner.forks, " forks, ", counts.user.users, " users, ",
            counts.user.pending_children, " pending children and ",
            counts.control_operations, " control operations left"));
      }
    }
  }

  int64_t last_number_ = 0;
  std::set<int64_t> live_;
  std::map<RRefId, int64_t> numbers_;
  std::set<rpc::Incarnation> ended_;
  // Declared before the job, whose functions use it. Handles may outlive
  // agents.
  std::vector<Held> held_;
  rpc::ClusterSimulation job_;
};

using ReferenceSeedsTest = rpc::SeedsTest;

TEST_P(ReferenceSeedsTest, GuaranteesHoldForAllSeeds) {
  RunSeeds([](uint64_t seed, bool verbose) {
    return ReferenceSimulation(seed, verbose).Run();
  });
}

// The creation does not arrive, while a call that waits for its value is
// served.
TEST(ReferenceSimulationTest, LeavingDoesNotWaitForValuesThatAreNeverCreated) {
  constexpr rpc::Function<int64_t()> kCount{"test.Count"};
  constexpr rpc::Function<int64_t(RRef<int64_t>)> kReadCount{"test.ReadCount"};
  constexpr rpc::Function<int64_t(RRef<int64_t>)> kAskOwner{"test.AskOwner"};
  const rpc::CallOptions options{.timeout = absl::Minutes(2)};
  rpc::ClusterSimulation job(
      /*seed=*/1, {.num_workers = 3, .configure = [](rpc::AgentOptions& agent) {
                     agent.services.push_back(std::make_unique<RRefService>(
                         RRefOptions{.wait_for_users = false}));
                   }});
  bool waits = false;
  ASSERT_THAT(job.registry().Register(kCount, [] { return int64_t{1}; }),
              IsOk());
  ASSERT_THAT(job.registry().Register(kReadCount,
                                      [&](RRef<int64_t> rref) {
                                        waits = true;
                                        return rref.ToHereAsync();
                                      }),
              IsOk());
  ASSERT_THAT(
      job.registry().Register(kAskOwner,
                              [&](RRef<int64_t> rref) {
                                return rpc::CurrentCall::Get()->agent().Async(
                                    rref.owner(), options, kReadCount, rref);
                              }),
      IsOk());
  job.RestartDeparted();
  job.Advance(absl::Milliseconds(100));

  job.Block(0, 1, true);
  const absl::StatusOr<RRef<int64_t>> made =
      Remote(*job.agent(0), "w1", options, kCount);
  ASSERT_THAT(made, IsOk());
  const async::Future<int64_t> read =
      job.agent(0)->Async("w2", options, kAskOwner, *made);
  job.Advance(absl::Milliseconds(200));
  ASSERT_TRUE(waits);
  ASSERT_FALSE(read.ready());

  job.Leave(1);
  // The leave notice to w0 takes three seconds, because its reply does not
  // arrive.
  job.Advance(absl::Seconds(5));
  ASSERT_TRUE(read.ready());
  EXPECT_THAT(read.result(), StatusIs(absl::StatusCode::kUnavailable,
                                      HasSubstr("will not be created")));
  EXPECT_EQ(job.agent(1), nullptr) << "w1 has not left yet";
  EXPECT_EQ(job.failure(), "");
}

INSTANTIATE_TEST_SUITE_P(Seeds, ReferenceSeedsTest,
                         testing::ValuesIn(rpc::SeedsOfCases()));

}  // namespace
}  // namespace hawser::rref

#include "rref/testing/reference_workload.h"

#include <algorithm>
#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/current_call.h"
#include "rpc/functions/function.h"
#include "rref/rref_service.h"

namespace hawser::rref {
namespace {

using ::hawser::async::IsOk;

constexpr rpc::Function<Resource(int64_t)> kMake{"test.Make"};
constexpr rpc::Function<void(RRef<Resource>)> kKeep{"test.Keep"};
// Returns one of the references that the worker keeps; empty if it keeps none.
constexpr rpc::Function<std::vector<RRef<Resource>>()> kGive{"test.Give"};
// Returns the number of a resource. Runs at the owner.
constexpr rpc::Function<int64_t(RRef<Resource>)> kRead{"test.Read"};

}  // namespace

void ReferenceWorkload::AddService(rpc::AgentOptions& options) {
  // The other workers go on when one leaves.
  options.services.push_back(std::make_unique<RRefService>(
      RRefOptions{.audit_interval = kSettling / 2, .wait_for_users = false}));
}

void ReferenceWorkload::Attach(rpc::ClusterSimulation* job) {
  job_ = job;
  rpc::FunctionRegistry& registry = job_->registry();
  EXPECT_THAT(
      registry.Register(kMake, [this](int64_t number) { return Make(number); }),
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

Resource ReferenceWorkload::Make(int64_t number) {
  if (!live_.insert(number).second) {
    job_->Fail(absl::StrCat("value ", number, " was created twice"));
  }
  return Resource(this, number);
}

// G2, unless one of the workers considers the other lost or the owner leaves.
void ReferenceWorkload::OnEnd(int64_t number) {
  live_.erase(number);
  job_->Note(absl::StrCat("value ", number, " ends"));
  for (const Held& held : held_) {
    if (NumberOf(held.rref) != number || !held.rref.confirmed() ||
        !LivesOn(held)) {
      continue;
    }
    rpc::Agent* const owner = OwnerOf(held.rref);
    rpc::Agent* const holder = job_->agent(held.worker);
    if (owner == nullptr || job_->leaving(owner->info().id.value()) ||
        owner->IsLost(holder->info()) || holder->IsLost(owner->info())) {
      continue;
    }
    job_->Fail(absl::StrCat("value ", number, " ended while w", held.worker,
                            " held it"));
  }
}

bool ReferenceWorkload::LivesOn(const Held& held) {
  rpc::Agent* const agent = job_->agent(held.worker);
  return agent != nullptr && agent->info().incarnation == held.holder &&
         !ended_.contains(held.holder) && !job_->leaving(held.worker);
}

rpc::Agent* ReferenceWorkload::OwnerOf(const RRef<Resource>& rref) {
  for (int i = 0; i < job_->num_workers(); ++i) {
    rpc::Agent* const agent = job_->agent(i);
    if (agent == nullptr || agent->info() != rref.owner()) continue;
    return ended_.contains(agent->info().incarnation) ? nullptr : agent;
  }
  return nullptr;
}

void ReferenceWorkload::Keep(rpc::Agent& agent, RRef<Resource> rref) {
  const rpc::WorkerInfo& self = agent.info();
  if (ended_.contains(self.incarnation)) return;
  held_.push_back({self.id.value(), self.incarnation, std::move(rref)});
}

std::vector<RRef<Resource>> ReferenceWorkload::Give() {
  const rpc::Incarnation self =
      rpc::CurrentCall::Get()->agent().info().incarnation;
  for (const Held& held : held_) {
    if (held.holder == self) return {held.rref};
  }
  return {};
}

void ReferenceWorkload::ForgetTheEnded() {
  // Destroying a handle may call back, so it must no longer be in the list.
  const auto ended = std::partition(
      held_.begin(), held_.end(),
      [this](const Held& held) { return !ended_.contains(held.holder); });
  const std::vector<Held> forgotten(ended, held_.end());
  held_.erase(ended, held_.end());
}

void ReferenceWorkload::DropAll() {
  std::vector<Held> dropped;
  dropped.swap(held_);
}

void ReferenceWorkload::RandomAction() {
  async::RandomSource& random = job_->random();
  const int from = static_cast<int>(random.Below(job_->num_workers()));
  const std::string to = absl::StrCat("w", random.Below(job_->num_workers()));
  const rpc::CallOptions options{
      .timeout = absl::Milliseconds(200 + random.Below(4000))};
  rpc::Agent* const agent = job_->agent(from);
  if (agent == nullptr) return;
  switch (random.Below(8)) {
    case 0:
    case 1: {
      const int64_t number = ++last_number_;
      absl::StatusOr<RRef<Resource>> made =
          Remote(*agent, to, options, kMake, number);
      if (!made.ok()) break;
      numbers_[made->id()] = number;
      job_->Note(absl::StrCat("value ", number, " of w", from, " at ", to));
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

void ReferenceWorkload::UseRandomly(const rpc::CallOptions& options) {
  if (held_.empty()) return;
  async::RandomSource& random = job_->random();
  const size_t index = random.Below(held_.size());
  const std::string to = absl::StrCat("w", random.Below(job_->num_workers()));
  const Held held = held_[index];
  rpc::Agent* const agent = job_->agent(held.worker);
  if (agent == nullptr || agent->info().incarnation != held.holder) return;
  switch (random.Below(4)) {
    case 0:
      (void)agent->Async(to, options, kKeep, held.rref);
      break;
    case 1:
      (void)Read(*agent, held.rref, options);
      break;
    default:
      job_->Note(
          absl::StrCat("w", held.worker, " drops value ", NumberOf(held.rref)));
      held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(index));
      break;
  }
}

async::Future<int64_t> ReferenceWorkload::Read(
    rpc::Agent& agent, const RRef<Resource>& rref,
    const rpc::CallOptions& options) {
  async::Future<int64_t> read = agent.Async(rref.owner(), options, kRead, rref);
  read.OnReady([this,
                number = NumberOf(rref)](const absl::StatusOr<int64_t>& value) {
    if (value.ok() && *value != number) {
      job_->Fail(absl::StrCat("got value ", *value, " instead of ", number));
    }
  });
  return read;
}

void ReferenceWorkload::CheckThatTheHeldLive() {
  std::vector<std::pair<std::string, async::Future<int64_t>>> reads;
  for (const Held& held : held_) {
    const std::string what =
        absl::StrCat("value ", NumberOf(held.rref), " held by w", held.worker);
    if (!held.rref.WhenConfirmed().ready()) {
      job_->Fail(absl::StrCat(what, " is neither confirmed nor refused"));
    } else if (held.rref.confirmed() && OwnerOf(held.rref) != nullptr) {
      reads.emplace_back(what, Read(*job_->agent(held.worker), held.rref,
                                    {.timeout = absl::Seconds(2)}));
    }
  }
  job_->Advance(absl::Seconds(3));
  for (const auto& [what, read] : reads) {
    if (!read.ready()) {
      job_->Fail(absl::StrCat(what, " was not read"));
    } else if (!read.result().ok()) {
      job_->Fail(absl::StrCat(what, ": ", read.result().status().ToString()));
    }
  }
}

// G5.
void ReferenceWorkload::CheckThatNothingIsLeft() {
  for (const int64_t number : live_) {
    job_->Fail(absl::StrCat("value ", number, " still exists"));
  }
  for (int i = 0; i < job_->num_workers(); ++i) {
    const Protocol::Counts counts =
        job_->agent(i)->service<RRefService>()->protocol()->counts();
    if (counts.owner.owners + counts.owner.forks + counts.user.users +
            counts.user.pending_children + counts.control_operations >
        0) {
      job_->Fail(absl::StrCat(
          "w", i, " has ", counts.owner.owners, " owner entries, ",
          counts.owner.forks, " forks, ", counts.user.users, " users, ",
          counts.user.pending_children, " pending children and ",
          counts.control_operations, " control operations left"));
    }
  }
}

}  // namespace hawser::rref

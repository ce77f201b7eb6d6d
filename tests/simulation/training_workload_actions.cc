// The random actions of a TrainingWorkload, and its handles.

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/random_source.h"
#include "async/testing/status_matchers.h"
#include "dist_autograd/dist_autograd_service.h"
#include "dist_optim/dist_optim_service.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/agent/current_call.h"
#include "rpc/functions/function.h"
#include "rpc/identity/call_options.h"
#include "tests/simulation/training_workload.h"

namespace hawser::tests {
namespace {

using ::hawser::async::IsOk;

constexpr rpc::Function<Tensor(int64_t)> kMakeParameter{"training.Make"};
constexpr rpc::Function<void(rref::RRef<Tensor>, int64_t)> kKeepParameter{
    "training.Keep"};
// The last slots are for CheckThatAllCanTrain, which takes 8 in each round.
constexpr int64_t kRandomSlots =
    ParameterLedger::kSlots - TrainingWorkload::kAllRounds * 8;

std::string NameOf(int worker) { return absl::StrCat("w", worker); }

}  // namespace

void TrainingWorkload::AddServices(rpc::AgentOptions& options) {
  options.default_timeout = kLongest / 3;
  // The network loses messages.
  options.services.push_back(
      std::make_unique<dist_autograd::DistAutogradService>(
          dist_autograd::DistAutogradOptions{.gradient_attempt_timeout =
                                                 absl::Milliseconds(300)}));
  options.services.push_back(std::make_unique<dist_optim::DistOptimService>());
}

void TrainingWorkload::Attach(rpc::ClusterSimulation* job) {
  job_ = job;
  const auto make = [this](int64_t number) {
    Tensor parameter;
    job_->Fail(ledger_.Create(
        number, rpc::CurrentCall::Get()->agent().info().incarnation,
        parameter));
    return parameter;
  };
  EXPECT_THAT(job_->registry().Register(kMakeParameter, make), IsOk());
  const auto keep = [this](rref::RRef<Tensor> rref, int64_t number) {
    const rpc::WorkerInfo& self = rpc::CurrentCall::Get()->agent().info();
    if (ended_.contains(self.incarnation)) return;
    held_.push_back(
        {{self.id.value(), self.incarnation}, number, std::move(rref)});
  };
  EXPECT_THAT(job_->registry().Register(kKeepParameter, keep), IsOk());
  RegisterForward();
}

std::optional<TrainingWorkload::Run> TrainingWorkload::RunOf(int worker) {
  const rpc::Agent* const agent = job_->agent(worker);
  if (agent == nullptr || job_->leaving(worker)) return std::nullopt;
  return Run{worker, agent->info().incarnation};
}

rpc::Agent* TrainingWorkload::Running(const Run& run) {
  rpc::Agent* const agent = job_->agent(run.worker);
  return agent != nullptr && agent->info().incarnation == run.incarnation &&
                 !ended_.contains(run.incarnation)
             ? agent
             : nullptr;
}

rpc::Agent* TrainingWorkload::OwnerFor(const Run& run, int64_t number) {
  rpc::Agent* const trainer = Running(run);
  for (int i = 0; trainer != nullptr && i < job_->num_workers(); ++i) {
    const std::optional<Run> owner = RunOf(i);
    if (!owner.has_value() || Running(*owner) == nullptr ||
        owner->incarnation != ledger_.OwnerOf(number)) {
      continue;
    }
    rpc::Agent* const agent = job_->agent(i);
    // Each ends the contexts of the other if it considers that lost.
    return agent->IsLost(trainer->info()) || trainer->IsLost(agent->info()) ||
                   job_->DeclaredLost(i)
               ? nullptr
               : agent;
  }
  return nullptr;
}

std::vector<TrainingWorkload::Held> TrainingWorkload::HeldBy(
    const Run& run) const {
  std::vector<Held> own;
  for (const Held& held : held_) {
    if (held.holder.incarnation == run.incarnation) own.push_back(held);
  }
  return own;
}

void TrainingWorkload::MakeParameter(const Run& run, int to) {
  const int64_t number = ++last_number_;
  absl::StatusOr<rref::RRef<Tensor>> made =
      rref::Remote(*Running(run), NameOf(to), kMakeParameter, number);
  if (!made.ok()) return;
  job_->Note(
      absl::StrCat("parameter ", number, " of w", run.worker, " at w", to));
  held_.push_back({run, number, *std::move(made)});
}

void TrainingWorkload::ShareParameter(const Run& run) {
  const std::vector<Held> own = HeldBy(run);
  if (own.empty()) return;
  const Held& held = own[job_->random().Below(own.size())];
  const auto to = static_cast<int>(job_->random().Below(job_->num_workers()));
  (void)Running(run)->Async(NameOf(to), kKeepParameter, held.rref, held.number);
}

void TrainingWorkload::DropRandomly() {
  // Destroying a handle may call back, so it must no longer be in the list.
  async::RandomSource& random = job_->random();
  if (!optimizers_.empty() && random.Below(3) == 0) {
    std::swap(optimizers_[random.Below(optimizers_.size())],
              optimizers_.back());
    const Optimizer dropped = std::move(optimizers_.back());
    optimizers_.pop_back();
  } else if (!held_.empty()) {
    std::swap(held_[random.Below(held_.size())], held_.back());
    const Held dropped = std::move(held_.back());
    held_.pop_back();
  }
}

void TrainingWorkload::ForgetTheEnded() {
  const auto lives = [this](const auto& handle) {
    return !ended_.contains(handle.holder.incarnation);
  };
  const auto held = std::partition(held_.begin(), held_.end(), lives);
  const std::vector<Held> forgotten(held, held_.end());
  held_.erase(held, held_.end());
  const auto optimizers =
      std::partition(optimizers_.begin(), optimizers_.end(), lives);
  const std::vector<Optimizer> ended(optimizers, optimizers_.end());
  optimizers_.erase(optimizers, optimizers_.end());
}

void TrainingWorkload::DropAll() {
  const std::vector<Held> held = std::exchange(held_, {});
  const std::vector<Optimizer> optimizers = std::exchange(optimizers_, {});
}

std::optional<TrainingWorkload::Plan> TrainingWorkload::RandomPlan(
    const Run& run) {
  async::RandomSource& random = job_->random();
  std::vector<Held> own = HeldBy(run);
  // Most trainings can succeed.
  const bool tries_all = random.Below(8) == 0;
  std::erase_if(own, [&](const Held& held) {
    return !tries_all && OwnerFor(run, held.number) == nullptr;
  });
  std::vector<int> workers;
  for (int i = 0; i < job_->num_workers(); ++i) {
    if (tries_all || RunOf(i).has_value()) workers.push_back(i);
  }
  if (own.empty() || next_slot_ == kRandomSlots) return std::nullopt;
  Plan plan;
  plan.slot = next_slot_++;
  plan.branches.resize(1 + random.Below(2));
  for (Branch& branch : plan.branches) {
    branch.hops.resize(1 + random.Below(3));
    for (Hop& hop : branch.hops) {
      const Held& held = own[random.Below(own.size())];
      hop = {.worker = workers[random.Below(workers.size())],
             .factor = 1 + static_cast<int64_t>(random.Below(3)),
             .weight = 1 + static_cast<int64_t>(random.Below(4)),
             .number = held.number,
             .parameter = held.rref};
    }
  }
  plan.fast = random.Below(3) == 0;
  if (!plan.fast && plan.branches.size() > 1) {
    plan.branches.back().used = random.Below(3) > 0;
  }
  plan.input_requires_grad = random.Below(2) == 0;
  plan.passes = random.Below(4) == 0 ? 2 : 1;
  plan.persists = random.Below(2) == 0;
  plan.timeout = absl::Milliseconds(1000 + random.Below(8000));
  std::vector<Optimizer> optimizers;
  for (const Optimizer& optimizer : optimizers_) {
    if (optimizer.holder.incarnation == run.incarnation) {
      optimizers.push_back(optimizer);
    }
  }
  if (!optimizers.empty()) {
    plan.optimizer = optimizers[random.Below(optimizers.size())];
    plan.steps = 1 + static_cast<int>(random.Below(2));
  }
  return plan;
}

void TrainingWorkload::RandomAction() {
  async::RandomSource& random = job_->random();
  const std::optional<Run> run =
      RunOf(static_cast<int>(random.Below(job_->num_workers())));
  if (!run.has_value()) return;
  switch (random.Below(12)) {
    case 0:
    case 1:
    case 2:
      MakeParameter(*run, static_cast<int>(random.Below(job_->num_workers())));
      break;
    case 3:
      ShareParameter(*run);
      break;
    case 4:
    case 5: {
      std::vector<Held> own = HeldBy(*run);
      while (own.size() > 3) {
        own.erase(own.begin() +
                  static_cast<std::ptrdiff_t>(random.Below(own.size())));
      }
      if (own.empty()) break;
      (void)MakeOptimizer(*run, std::move(own), /*must_succeed=*/false);
      break;
    }
    case 6:
      DropRandomly();
      break;
    default:
      if (std::optional<Plan> plan = RandomPlan(*run)) {
        job_->Note(absl::StrCat("training ", plan->slot, " of w", run->worker));
        (void)Train(*run, *std::move(plan));
      }
      break;
  }
}

void TrainingWorkload::CheckThatAllCanTrain(int rounds) {
  DropAll();
  const int count = job_->num_workers();
  std::vector<Run> runs;
  for (int i = 0; i < count; ++i) {
    runs.push_back({i, job_->agent(i)->info().incarnation});
    for (int to = 0; to < count; ++to) MakeParameter(runs.back(), to);
  }
  job_->Advance(absl::Seconds(1));
  for (const Run& run : runs) {
    (void)MakeOptimizer(run, HeldBy(run), /*must_succeed=*/true);
  }
  job_->Advance(absl::Seconds(1));
  if (static_cast<int>(optimizers_.size()) != count) {
    job_->Fail("not all workers have an optimizer");
  }
  next_slot_ = kRandomSlots;
  for (int round = 0; round < rounds; ++round) {
    TrainEverywhere();
    job_->Advance(absl::Seconds(1));
  }
  job_->Advance(absl::Seconds(5));
  CheckEnds();
}

void TrainingWorkload::TrainEverywhere() {
  const int count = job_->num_workers();
  for (const Optimizer& optimizer : optimizers_) {
    for (const bool fast : {false, true}) {
      Plan plan{.slot = next_slot_++,
                .branches = {{}, {}},
                .input_requires_grad = true,
                .fast = fast,
                .passes = 2,
                .timeout = absl::Seconds(5),
                .optimizer = optimizer,
                .steps = 1,
                .must_succeed = true};
      for (const Held& held : HeldBy(optimizer.holder)) {
        Branch& branch =
            plan.branches[plan.branches[0].hops.size() > 1 ? 1 : 0];
        branch.hops.push_back({.worker = static_cast<int>(held.number) % count,
                               .factor = 2,
                               .weight = 3,
                               .number = held.number,
                               .parameter = held.rref});
      }
      (void)Train(optimizer.holder, std::move(plan));
    }
  }
}

}  // namespace hawser::tests

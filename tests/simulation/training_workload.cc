#include "tests/simulation/training_workload.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/coroutine.h"
#include "async/testing/status_matchers.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/variable.h"
#include "dist_autograd/dist_autograd.h"
#include "dist_autograd/dist_autograd_service.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optim/sgd.h"
#include "rpc/agent/current_call.h"
#include "rpc/functions/function.h"
#include "rpc/identity/call_options.h"

namespace hawser::tests {
namespace {

using ::hawser::async::IsOk;
using Parameters = std::vector<rref::RRef<Tensor>>;

// Input, parameters, and the plan: slot, then worker, factor and weight of each
// hop, of which the first runs here.
constexpr rpc::Function<Tensor(Tensor, Parameters, std::vector<int64_t>)>
    kForward{"training.Forward"};
constexpr size_t kHopNumbers = 3;

std::string NameOf(int64_t worker) { return absl::StrCat("w", worker); }

}  // namespace

class TrainingWorkload::Operation {
 public:
  explicit Operation(TrainingWorkload* workload) : workload_(*workload) {
    ++workload_.num_operations_;
  }
  ~Operation() { --workload_.num_operations_; }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

 private:
  TrainingWorkload& workload_;
};

void TrainingWorkload::RegisterForward() {
  EXPECT_THAT(job_->registry().Register(
                  kForward,
                  [this](Tensor input, Parameters parameters,
                         std::vector<int64_t> plan) {
                    return Forward(std::move(input), std::move(parameters),
                                   std::move(plan));
                  }),
              IsOk());
}

// --- The forward pass.

async::Future<Tensor> TrainingWorkload::Forward(Tensor input,
                                                Parameters parameters,
                                                std::vector<int64_t> plan) {
  const Operation operation(this);
  rpc::Agent& agent = rpc::CurrentCall::Get()->agent();
  const int64_t slot = plan[0];
  const auto factor = static_cast<double>(plan[2]);
  Tensor weight = Tensor::Zeros(input.shape(), {.dtype = input.dtype()});
  weight.data<double>()[slot] = static_cast<double>(plan[3]);
  // At the owner, the parameter itself.
  CO_ASSIGN_OR_RETURN(const Tensor parameter,
                      co_await parameters.front().ToHereAsync());
  CO_ASSIGN_OR_RETURN(const Tensor scaled, autograd::MulScalar(input, factor));
  CO_ASSIGN_OR_RETURN(const Tensor term, autograd::Mul(parameter, weight));
  CO_ASSIGN_OR_RETURN(Tensor output, autograd::Add(scaled, term));
  parameters.erase(parameters.begin());
  if (parameters.empty()) co_return output;
  plan.erase(plan.begin() + 1, plan.begin() + 1 + kHopNumbers);
  co_return co_await agent.Async(NameOf(plan[1]), kForward, output, parameters,
                                 plan);
}

std::vector<int64_t> TrainingWorkload::Encode(const Plan& plan,
                                              const Branch& branch) {
  std::vector<int64_t> numbers = {plan.slot};
  for (const Hop& hop : branch.hops) {
    numbers.insert(numbers.end(), {hop.worker, hop.factor, hop.weight});
  }
  return numbers;
}

void TrainingWorkload::Add(const Branch& branch, Expected& expected) {
  double factor = 1;
  for (auto hop = branch.hops.rbegin(); hop != branch.hops.rend(); ++hop) {
    expected.by_parameter[hop->number] +=
        static_cast<double>(hop->weight) * factor;
    factor *= static_cast<double>(hop->factor);
  }
  expected.input += factor;
}

// --- One training.

async::Future<void> TrainingWorkload::Train(Run run, Plan plan) {
  const Operation operation(this);
  plan.workers = RunningWorkers();
  rpc::Agent* agent = Running(run);
  CO_ASSIGN_OR_RETURN(const std::shared_ptr<dist_autograd::Engine> engine,
                      dist_autograd::EngineOf(*agent));
  CO_ASSIGN_OR_RETURN(std::shared_ptr<dist_autograd::Context> context,
                      engine->CreateContext());
  Tensor input =
      Tensor::Ones({ParameterLedger::kSlots}, {.dtype = tensor::DType::kF64});
  CO_RETURN_IF_ERROR(
      autograd::SetRequiresGrad(input, plan.input_requires_grad));
  std::vector<async::Future<Tensor>> outputs;
  {
    const dist_autograd::Engine::CurrentContext current(context);
    for (const Branch& branch : plan.branches) {
      Parameters parameters;
      for (const Hop& hop : branch.hops) parameters.push_back(hop.parameter);
      outputs.push_back(agent->Async(NameOf(branch.hops.front().worker),
                                     {.timeout = plan.timeout}, kForward, input,
                                     parameters, Encode(plan, branch)));
    }
  }
  Expected expected;
  Tensor loss;
  absl::Status failed;
  for (size_t i = 0; i < outputs.size(); ++i) {
    absl::StatusOr<Tensor> output = co_await std::move(outputs[i]);
    if (!output.ok()) {
      failed = output.status();
      CheckOutcome("forward", failed, plan.must_succeed);
      continue;
    }
    if (!plan.branches[i].used) continue;
    Add(plan.branches[i], expected);
    CO_ASSIGN_OR_RETURN(const Tensor sum, autograd::Sum(*output));
    if (loss.defined()) {
      CO_ASSIGN_OR_RETURN(loss, autograd::Add(loss, sum));
    } else {
      loss = sum;
    }
  }
  // Fast passes need all branches.
  const bool goes_on =
      loss.defined() && (failed.ok() || (plan.persists && !plan.fast));
  absl::Status status = failed;
  if (goes_on) {
    status = co_await RunPasses(run, plan, context, loss, input, expected);
    if (status.ok()) {
      status = co_await RunSteps(run, plan, context->id(), expected);
    }
  }
  job_->Note(absl::StrCat("training ", plan.slot, " of w", run.worker,
                          " ends: ", status.ToString()));
  engine->ReleaseContext(context->id());
  co_return status;
}

async::Future<void> TrainingWorkload::RunPasses(
    Run run, const Plan& plan, std::shared_ptr<dist_autograd::Context> context,
    Tensor loss, Tensor input, const Expected& expected) {
  const std::vector<Tensor> roots(1, loss);
  int ok = 0;
  for (int pass = 0; pass < plan.passes; ++pass) {
    rpc::Agent* const agent = Running(run);
    if (agent == nullptr) co_return absl::CancelledError("the trainer ended");
    dist_autograd::BackwardOptions options;
    options.retain_graph = pass + 1 < plan.passes;
    options.mode = plan.fast ? dist_autograd::BackwardMode::kFast
                             : dist_autograd::BackwardMode::kSmart;
    options.timeout = plan.timeout;
    const absl::Status status = co_await dist_autograd::BackwardAsync(
        *agent, context->id(), roots, options);
    CheckOutcome("backward", status, plan.must_succeed);
    if (status.ok()) ++ok;
    CheckGradients(run, plan, *context, input, expected, ok, pass + 1 - ok);
    CO_RETURN_IF_ERROR(status);
  }
  co_return absl::OkStatus();
}

async::Future<void> TrainingWorkload::RunSteps(Run run, const Plan& plan,
                                               dist_autograd::ContextId context,
                                               const Expected& expected) {
  if (!plan.optimizer.has_value()) co_return absl::OkStatus();
  for (int step = 0; step < plan.steps; ++step) {
    if (Running(run) == nullptr) {
      co_return absl::CancelledError("the trainer ended");
    }
    std::vector<int64_t> changed;
    for (const auto& [number, gradient] : expected.by_parameter) {
      if (!plan.optimizer->numbers.contains(number)) continue;
      changed.push_back(number);
      ledger_.BeginStep(number, plan.slot, gradient * plan.passes);
    }
    const absl::Status status =
        co_await plan.optimizer->optimizer->StepAsync(context);
    CheckOutcome("step", status, plan.must_succeed);
    if (status.ok()) {
      for (const int64_t number : changed) ledger_.Applied(number, plan.slot);
    }
    job_->Fail(ledger_.Check());
    CO_RETURN_IF_ERROR(status);
  }
  co_return absl::OkStatus();
}

async::Future<void> TrainingWorkload::MakeOptimizer(
    Run run, std::vector<Held> parameters, bool must_succeed) {
  const Operation operation(this);
  Optimizer made;
  made.holder = run;
  Parameters rrefs;
  for (const Held& held : parameters) {
    if (made.numbers.insert(held.number).second) rrefs.push_back(held.rref);
  }
  std::vector<dist_optim::DistributedOptimizer::ParameterGroup> groups(1);
  groups[0].rule = optim::Sgd({.lr = 1});
  groups[0].parameters = std::move(rrefs);
  absl::StatusOr<std::unique_ptr<dist_optim::DistributedOptimizer>> optimizer =
      co_await dist_optim::DistributedOptimizer::CreateAsync(*Running(run),
                                                             groups);
  CheckOutcome("optimizer", optimizer.status(), must_succeed);
  if (optimizer.ok() && Running(run) != nullptr) {
    made.optimizer = *std::move(optimizer);
    optimizers_.push_back(std::move(made));
  }
  co_return absl::OkStatus();
}

// --- Checks.

void TrainingWorkload::CheckGradients(const Run& run, const Plan& plan,
                                      const dist_autograd::Context& context,
                                      const Tensor& input,
                                      const Expected& expected, int ok,
                                      int failed) {
  if (plan.input_requires_grad && Running(run) != nullptr) {
    const Tensor gradient = context.gradient(input);
    CheckGradient(absl::StrCat("the gradient of input ", plan.slot),
                  gradient.defined() ? gradient.data<double>()[0] : 0,
                  expected.input, ok, failed);
  }
  for (const auto& [number, value] : expected.by_parameter) {
    rpc::Agent* const owner = OwnerFor(run, number);
    if (owner == nullptr) continue;
    const auto engine = dist_autograd::EngineOf(*owner);
    const auto there = (*engine)->FindContext(context.id());
    if (!there.ok()) {
      OnCutOff(plan.workers);
      continue;
    }
    const Tensor gradient = (*there)->gradient(ledger_.Find(number));
    const std::string what =
        absl::StrCat("the gradient of parameter ", number, " in slot ");
    for (int64_t i = 0; i < ParameterLedger::kSlots; ++i) {
      CheckGradient(absl::StrCat(what, i),
                    gradient.defined() ? gradient.data<double>()[i] : 0,
                    i == plan.slot ? value : 0, ok, failed);
    }
  }
}

void TrainingWorkload::CheckGradient(const std::string& what, double gradient,
                                     double expected, int ok, int failed) {
  if (gradient >= expected * ok && gradient <= expected * (ok + failed) &&
      gradient == static_cast<double>(static_cast<int64_t>(gradient))) {
    return;
  }
  job_->Fail(absl::StrCat(what, " is ", gradient, ", that of a pass ", expected,
                          ", after ", ok, " passes and ", failed,
                          " failed ones"));
}

void TrainingWorkload::CheckOutcome(const std::string& what,
                                    const absl::Status& status,
                                    bool must_succeed) {
  if (status.ok()) return;
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kResourceExhausted:
      if (!must_succeed) return;
      break;
    default:
      break;
  }
  job_->Fail(absl::StrCat(what, " failed: ", status.ToString()));
}

void TrainingWorkload::CheckEnds() {
  if (num_operations_ > 0) {
    job_->Fail(absl::StrCat(num_operations_, " trainings have not ended"));
  }
  job_->Fail(ledger_.Check());
  for (const std::vector<Run>& all : cut_offs_) {
    const bool none_was_lost =
        std::all_of(all.begin(), all.end(),
                    [this](const Run& run) { return Running(run) != nullptr; });
    if (none_was_lost) {
      job_->Fail("a context ended before its trainer released it");
    }
  }
}

void TrainingWorkload::OnCutOff(const std::vector<Run>& workers_at_begin) {
  std::vector<Run> all = RunningWorkers();
  all.insert(all.end(), workers_at_begin.begin(), workers_at_begin.end());
  cut_offs_.push_back(std::move(all));
}

std::vector<TrainingWorkload::Run> TrainingWorkload::RunningWorkers() const {
  std::vector<Run> all;
  for (int i = 0; i < job_->num_workers(); ++i) {
    const rpc::Agent* const agent = job_->agent(i);
    if (agent != nullptr) all.push_back({i, agent->info().incarnation});
  }
  return all;
}

}  // namespace hawser::tests

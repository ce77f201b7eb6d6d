#include "tests/soak/load.h"

#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/clock.h"
#include "async/status_macros.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "dist_autograd/dist_autograd.h"
#include "optim/sgd.h"
#include "rpc/identity/worker_info.h"
#include "rpc/stream/stream.h"
#include "tests/soak/functions.h"

namespace hawser::tests {
namespace {

// Longer than any allowed delay, so that a call that hangs shows as
// kDeadlineExceeded.
constexpr absl::Duration kTimeout = absl::Seconds(60);
constexpr rpc::CallOptions kOptions = {.timeout = kTimeout};

bool MayFailWith(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsFailedPrecondition(status) ||
         absl::IsNotFound(status) || absl::IsAborted(status);
}

absl::Status Expect(double actual, double expected, const char* what) {
  if (actual == expected) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(what, " is ", actual, " instead of ", expected));
}

}  // namespace

Load::Load(rpc::Agent* agent, uint64_t seed, absl::Duration interval,
           Reporter on_failed, Reporter on_wrong)
    : agent_(*agent),
      interval_(interval),
      on_failed_(std::move(on_failed)),
      on_wrong_(std::move(on_wrong)),
      random_(seed),
      thread_([this] { Run(); }) {}

Load::~Load() {
  {
    async::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void Load::Pause() {
  async::MutexLock lock(&mutex_);
  paused_ = true;
  changed_.NotifyAll();
  while (!idle_) changed_.Wait(&mutex_);
}

void Load::Resume() {
  async::MutexLock lock(&mutex_);
  paused_ = false;
  idle_ = false;
  changed_.NotifyAll();
}

void Load::Run() {
  while (AwaitNext()) {
    const absl::Status status = Step();
    if (status.ok()) {
      ++num_steps_;
      continue;
    }
    ++num_failed_;
    (MayFailWith(status) ? on_failed_ : on_wrong_)(status.ToString());
  }
}

bool Load::AwaitNext() {
  const async::MonotonicTime next =
      async::AddDelay(std::chrono::steady_clock::now(), interval_);
  bool paused = false;
  {
    async::MutexLock lock(&mutex_);
    while (!stopping_ && !paused_ && changed_.WaitUntil(&mutex_, next)) {
    }
    paused = paused_;
    if (stopping_) return false;
  }
  if (!paused) return true;
  model_.reset();
  async::MutexLock lock(&mutex_);
  while (paused_ && !stopping_) {
    // Again after a Resume that a Pause followed at once.
    idle_ = true;
    changed_.NotifyAll();
    changed_.Wait(&mutex_);
  }
  return !stopping_;
}

absl::Status Load::Step() {
  switch (random_.Below(4)) {
    case 0:
      return Call();
    case 1:
      return ShareReference();
    case 2:
      return Train();
    default:
      return ReadStream();
  }
}

absl::Status Load::Call() {
  // The second size does not travel with the message itself.
  const int64_t length = random_.Below(2) == 0 ? 16 : 65'536;
  const auto value = static_cast<double>(random_.Below(8));
  ASSIGN_OR_RETURN(
      const double sum,
      agent_.Sync(AnyPeer(), kOptions, kSum, Tensor::Full({length}, value)));
  return Expect(sum, value * static_cast<double>(length), "the sum");
}

absl::Status Load::ShareReference() {
  const auto value = static_cast<double>(random_.Below(1000));
  ASSIGN_OR_RETURN(
      const auto reference,
      rref::Remote(agent_, AnyPeer(), kOptions, kMakeParameter, value));
  ASSIGN_OR_RETURN(const double read,
                   agent_.Sync(AnyPeer(), kOptions, kReadAndKeep, reference));
  return Expect(read, value, "the value of a shared reference");
}

absl::Status Load::Train() {
  if (!model_.has_value()) RETURN_IF_ERROR(CreateModel());
  absl::Status status = TrainModel();
  // It is not known whether the owner that did not answer has taken the step.
  // Sums of integers are exact up to 2^24.
  if (!status.ok() || model_->expected_first < -1'000'000) model_.reset();
  return status;
}

absl::Status Load::CreateModel() {
  Model model;
  ASSIGN_OR_RETURN(model.first, rref::Remote(agent_, AnyPeer(), kOptions,
                                             kMakeParameter, 0.0));
  ASSIGN_OR_RETURN(model.second, rref::Remote(agent_, AnyPeer(), kOptions,
                                              kMakeParameter, 0.0));
  ASSIGN_OR_RETURN(model.optimizer, dist_optim::DistributedOptimizer::Create(
                                        agent_, optim::Sgd({.lr = 1}),
                                        {model.first, model.second}));
  model_ = std::move(model);
  return absl::OkStatus();
}

absl::Status Load::TrainModel() {
  const auto factor = static_cast<double>(1 + random_.Below(4));
  ASSIGN_OR_RETURN(const auto context,
                   dist_autograd::ContextScope::Open(agent_));
  ASSIGN_OR_RETURN(const Tensor first, model_->first.ToHere(kTimeout));
  ASSIGN_OR_RETURN(const Tensor second, model_->second.ToHere(kTimeout));
  RETURN_IF_ERROR(Expect(first.data<float>()[0], model_->expected_first,
                         "the first parameter"));
  RETURN_IF_ERROR(Expect(second.data<float>()[0], model_->expected_second,
                         "the second parameter"));
  // One of the two goes on to another worker.
  ASSIGN_OR_RETURN(const Tensor scaled,
                   agent_.Sync(AnyPeer(), kOptions, kScale, first, factor));
  ASSIGN_OR_RETURN(const Tensor both, autograd::Add(scaled, second));
  ASSIGN_OR_RETURN(const Tensor loss, autograd::Sum(both));
  RETURN_IF_ERROR(dist_autograd::Backward(agent_, context->id(), {loss},
                                          {.timeout = kTimeout}));
  RETURN_IF_ERROR(model_->optimizer->Step(context->id()));
  model_->expected_first -= factor;
  model_->expected_second -= 1;
  return absl::OkStatus();
}

absl::Status Load::ReadStream() {
  const auto count = static_cast<int64_t>(random_.Below(200));
  // Some readers end before the stream does.
  const int64_t stop = random_.Below(4) == 0 ? count / 2 : count + 1;
  ASSIGN_OR_RETURN(
      auto reader,
      rpc::Stream(agent_, AnyPeer(), rpc::StreamOptions{.timeout = kTimeout},
                  kCount, count));
  for (int64_t i = 0; i < stop; ++i) {
    ASSIGN_OR_RETURN(const std::optional<int64_t> value, reader.Next().Wait());
    if (!value.has_value()) {
      return Expect(static_cast<double>(i), static_cast<double>(count),
                    "the length of a stream");
    }
    RETURN_IF_ERROR(Expect(static_cast<double>(*value), static_cast<double>(i),
                           "a value of a stream"));
  }
  return absl::OkStatus();
}

std::string Load::AnyPeer() {
  std::vector<std::string> others;
  for (const rpc::WorkerInfo& worker : agent_.workers()) {
    if (worker != agent_.info()) others.push_back(worker.name);
  }
  // A worker that has just joined may know nobody yet, but finds names in the
  // store.
  return others.empty() ? "host" : others[random_.Below(others.size())];
}

}  // namespace hawser::tests

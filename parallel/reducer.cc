#include "parallel/reducer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "async/join.h"
#include "async/status_macros.h"
#include "autograd/variable.h"
#include "dist_autograd/backward_pass.h"
#include "dist_autograd/current_context.h"
#include "dist_autograd/ids.h"
#include "parallel/first_names.h"
#include "tensor/dtype.h"
#include "tensor/ops/in_place.h"

namespace hawser::parallel {

using collectives::ReduceOp;
using collectives::Work;
using dist_autograd::BackwardPass;
using dist_autograd::Context;

Reducer::Reducer(collectives::ProcessGroup& group, nn::NamedTensors parameters,
                 Options options)
    : group_(group),
      parameters_(std::move(parameters)),
      options_(std::move(options)) {}

absl::StatusOr<std::unique_ptr<Reducer>> Reducer::Create(
    collectives::ProcessGroup& group, nn::NamedTensors parameters,
    Options options) {
  std::unique_ptr<Reducer> reducer(
      new Reducer(group, std::move(parameters), std::move(options)));
  {
    // The last parameters get their gradients first.
    std::vector<size_t> order(reducer->parameters_.size());
    std::iota(order.rbegin(), order.rend(), 0);
    const async::MutexLock lock(&reducer->mutex_);
    RETURN_IF_ERROR(reducer->Assign(order));
  }
  for (size_t i = 0; i < reducer->parameters_.size(); ++i) {
    ASSIGN_OR_RETURN(autograd::HookHandle hook,
                     autograd::RegisterPostAccumulateHook(
                         reducer->parameters_[i].second,
                         [raw = reducer.get(), i](const Tensor&) {
                           return raw->OnGradient(i);
                         }));
    reducer->hooks_.push_back(std::move(hook));
  }
  const async::MutexLock lock(&reducer->lifetime_->mutex);
  reducer->lifetime_->reducer = reducer.get();
  return reducer;
}

Reducer::~Reducer() {
  for (autograd::HookHandle& hook : hooks_) hook.Remove();
  const async::MutexLock lock(&lifetime_->mutex);
  lifetime_->reducer = nullptr;
}

absl::Status Reducer::Assign(const std::vector<size_t>& order) {
  std::vector<BucketItem> items;
  for (const auto& [name, parameter] : parameters_) {
    items.push_back({parameter.dtype(), parameter.byte_size()});
  }
  std::vector<GradientBucket> buckets;
  std::vector<Place> places(parameters_.size());
  for (auto& indices : AssignBuckets(items, order, options_.first_bucket_bytes,
                                     options_.bucket_bytes)) {
    GradientBucket& bucket = buckets.emplace_back();
    bucket.index = static_cast<int>(buckets.size()) - 1;
    int64_t elements = 0;
    for (const size_t i : indices) {
      elements += parameters_[i].second.num_elements();
    }
    const Tensor& first = parameters_[indices[0]].second;
    ASSIGN_OR_RETURN(bucket.flat,
                     Tensor::TryEmpty({elements}, {.dtype = first.dtype(),
                                                   .device = first.device()}));
    int64_t begin = 0;
    for (const size_t i : indices) {
      const Tensor& parameter = parameters_[i].second;
      ASSIGN_OR_RETURN(const Tensor part,
                       bucket.flat.Narrow(0, begin, parameter.num_elements()));
      ASSIGN_OR_RETURN(Tensor view, part.View(parameter.shape()));
      begin += parameter.num_elements();
      // Gradients that were accumulated before the buckets were assigned.
      if (const Tensor old = autograd::Grad(parameter); old.defined()) {
        RETURN_IF_ERROR(view.CopyFrom(old));
        RETURN_IF_ERROR(autograd::SetGrad(parameter, view));
      }
      places[i].bucket = buckets.size() - 1;
      places[i].view = view;
      bucket.gradients.push_back(std::move(view));
    }
    bucket.parameters = std::move(indices);
  }
  buckets.back().is_last = true;
  buckets_ = std::move(buckets);
  places_ = std::move(places);
  return absl::OkStatus();
}

absl::Status Reducer::MissingGradients() const {
  std::vector<size_t> missing;
  for (size_t i = 0; i < places_.size(); ++i) {
    if (!places_[i].ready) missing.push_back(i);
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "the backward pass before has not delivered the gradients of ",
      missing.size(), " parameters: ", FirstNames(parameters_, missing),
      "; run the backward pass of each forward pass, from all its outputs"));
}

absl::Status Reducer::BeginLocalPass() {
  const async::MutexLock lock(&mutex_);
  if (state_ == State::kReducing) return MissingGradients();
  state_ = State::kLocal;
  return absl::OkStatus();
}

absl::Status Reducer::BeginPass(const Pass& pass) {
  bool complete = false;
  {
    const async::MutexLock lock(&mutex_);
    if (state_ == State::kReducing) return MissingGradients();
    state_ = State::kReducing;
    const auto* context = dist_autograd::kCurrentContext.get();
    context_ = context == nullptr ? nullptr : *context;
    if (context_ != nullptr) WatchContext(context_);
    works_.clear();
    order_.clear();
    varies_ = pass.varies;
    scale_ = pass.scale;
    lacking_.clear();
    for (const GradientBucket& bucket : buckets_) {
      lacking_.push_back(bucket.parameters.size());
    }
    num_lacking_ = parameters_.size();
    for (Place& place : places_) {
      place.ready = place.unused = false;
      place.in_context = Tensor();
    }
    if (varies_) {
      used_ = Tensor::Ones({static_cast<int64_t>(parameters_.size())},
                           {.dtype = tensor::DType::kI32});
    }
    for (const size_t i : pass.unused) {
      Place& place = places_[i];
      // Gradients of earlier passes count.
      const Tensor old = GradientOf(i);
      if (!old.defined()) {
        place.unused = true;
        RETURN_IF_ERROR(place.view.CopyFrom(
            Tensor::Zeros(place.view.shape(), {.dtype = place.view.dtype()})));
        if (varies_) used_.data<int32_t>()[i] = 0;
      } else {
        RETURN_IF_ERROR(Take(i, old));
      }
      MarkReady(i);
    }
    complete = num_lacking_ == 0;
  }
  return complete ? Finish() : absl::OkStatus();
}

Tensor Reducer::GradientOf(size_t parameter) const {
  const Tensor& variable = parameters_[parameter].second;
  return context_ != nullptr ? context_->gradient(variable)
                             : autograd::Grad(variable);
}

absl::Status Reducer::Take(size_t parameter, const Tensor& gradient) {
  Place& place = places_[parameter];
  if (gradient.is_same(place.view)) return absl::OkStatus();
  RETURN_IF_ERROR(place.view.CopyFrom(gradient));
  if (context_ != nullptr) {
    place.in_context = gradient;
    return absl::OkStatus();
  }
  return autograd::SetGrad(parameters_[parameter].second, place.view);
}

absl::Status Reducer::CheckContext(size_t parameter) const {
  const BackwardPass* const running = BackwardPass::Current();
  const BackwardPass* const expected =
      context_ == nullptr ? nullptr : context_->pass().get();
  if (running == expected && (context_ == nullptr || running != nullptr)) {
    return absl::OkStatus();
  }
  const auto describe = [](const std::string& id) {
    return id.empty() ? "outside of a distributed autograd context"
                      : absl::StrCat("in distributed autograd context ", id);
  };
  return absl::FailedPreconditionError(absl::StrCat(
      "the backward pass of parameter \"", parameters_[parameter].first,
      "\" runs ",
      describe(running == nullptr ? ""
                                  : ToString(running->options().id.context)),
      ", but DistributedDataParallel::Forward was called ",
      describe(context_ == nullptr ? "" : ToString(context_->id())),
      ": run both in the same context"));
}

void Reducer::WatchContext(const std::shared_ptr<Context>& context) {
  if (watched_.lock() == context) return;
  watched_ = context;
  context->OnFailedPass(
      [lifetime = lifetime_, raw = context.get()](const absl::Status& error) {
        const async::MutexLock lock(&lifetime->mutex);
        if (lifetime->reducer != nullptr) {
          lifetime->reducer->OnFailedPass(raw, error);
        }
      });
}

void Reducer::OnFailedPass(const Context* context, const absl::Status& error) {
  {
    const async::MutexLock lock(&mutex_);
    if (state_ != State::kReducing || context_.get() != context) return;
    state_ = State::kIdle;
    context_ = nullptr;
  }
  group_.Abort(absl::AbortedError(
      absl::StrCat("the backward pass of rank ", group_.rank(),
                   " has failed: ", std::string(error.message()))));
}

absl::Status Reducer::OnGradient(size_t parameter) {
  std::shared_ptr<Context> context;
  std::vector<Work> works;
  {
    const async::MutexLock lock(&mutex_);
    if (state_ == State::kLocal) return absl::OkStatus();
    Place& place = places_[parameter];
    if (state_ == State::kIdle || place.ready) {
      return absl::FailedPreconditionError(absl::StrCat(
          "parameter \"", parameters_[parameter].first, "\" got a gradient ",
          place.ready ? "twice" : "outside of a pass",
          ": run one backward pass for each DistributedDataParallel::Forward"));
    }
    RETURN_IF_ERROR(CheckContext(parameter));
    // The gradient of this pass, added to those of local passes before.
    const Tensor gradient = GradientOf(parameter);
    if (!gradient.defined()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "parameter \"", parameters_[parameter].first,
          "\" has no gradient: the distributed autograd context has ended, or "
          "a local backward pass runs inside of the distributed one"));
    }
    RETURN_IF_ERROR(Take(parameter, gradient));
    order_.push_back(parameter);
    MarkReady(parameter);
    if (num_lacking_ > 0) return absl::OkStatus();
    context = context_;
    works = works_;
  }
  if (context == nullptr) return Finish();
  const auto end = [lifetime = lifetime_,
                    raw = context.get()](const absl::Status& reduced) {
    const async::MutexLock lock(&lifetime->mutex);
    if (lifetime->reducer != nullptr) {
      return lifetime->reducer->EndPass(raw, reduced);
    }
    return absl::CancelledError("DistributedDataParallel was destroyed");
  };
  return context->AddWork(async::JoinAll(std::move(works)).Then(end));
}

void Reducer::MarkReady(size_t parameter) {
  Place& place = places_[parameter];
  place.ready = true;
  --lacking_[place.bucket];
  --num_lacking_;
  StartBuckets();
}

void Reducer::StartBuckets() {
  while (works_.size() < buckets_.size() && lacking_[works_.size()] == 0) {
    works_.push_back(options_.hook(group_, buckets_[works_.size()]));
  }
  if (works_.size() == buckets_.size() && varies_) {
    works_.push_back(group_.AllReduceAsync(used_, ReduceOp::kSum));
  }
}

// Waits without the lock: hooks and their results may take it.
absl::Status Reducer::Finish() {
  std::shared_ptr<Context> context;
  std::vector<Work> works;
  {
    const async::MutexLock lock(&mutex_);
    context = context_;
    works = works_;
  }
  absl::Status status;
  for (const Work& work : works) {
    const absl::Status& done = work.Wait();
    if (status.ok()) status = done;
  }
  return EndPass(context.get(), status);
}

absl::Status Reducer::EndPass(const Context* context,
                              const absl::Status& reduced) {
  const async::MutexLock lock(&mutex_);
  // A distributed pass may have failed meanwhile.
  if (state_ != State::kReducing || context_.get() != context) return reduced;
  state_ = State::kIdle;
  absl::Status status = reduced;
  if (status.ok()) status = ReturnGradients();
  context_ = nullptr;
  return status;
}

absl::Status Reducer::ReturnGradients() {
  for (GradientBucket& bucket : buckets_) {
    if (scale_ == 1) break;
    RETURN_IF_ERROR(tensor::MulScalarInPlace(bucket.flat, scale_));
  }
  for (size_t i = 0; i < places_.size(); ++i) {
    Place& place = places_[i];
    const Tensor& variable = parameters_[i].second;
    if (place.in_context.defined()) {
      RETURN_IF_ERROR(place.in_context.CopyFrom(place.view));
    } else if (place.unused && varies_ && used_.data<int32_t>()[i] != 0) {
      // Used on another rank.
      if (context_ != nullptr) {
        ASSIGN_OR_RETURN(Tensor gradient, place.view.Clone());
        RETURN_IF_ERROR(context_->AddGradient(variable, std::move(gradient)));
      } else {
        RETURN_IF_ERROR(autograd::SetGrad(variable, place.view));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Reducer::Rebuild() {
  const async::MutexLock lock(&mutex_);
  std::vector<int64_t> numbers(order_.begin(), order_.end());
  if (numbers.size() != parameters_.size()) {
    // Not all parameters got a gradient: the order of the first buckets.
    numbers.resize(parameters_.size());
    std::iota(numbers.rbegin(), numbers.rend(), 0);
  }
  const Tensor order =
      Tensor::FromVector(numbers, {static_cast<int64_t>(parameters_.size())});
  RETURN_IF_ERROR(group_.Broadcast(order, 0));
  numbers = order.ToVector<int64_t>();
  return Assign({numbers.begin(), numbers.end()});
}

absl::Status Reducer::ReduceZeros(bool varies) {
  {
    const async::MutexLock lock(&mutex_);
    for (GradientBucket& bucket : buckets_) {
      RETURN_IF_ERROR(bucket.flat.CopyFrom(
          Tensor::Zeros(bucket.flat.shape(), {.dtype = bucket.flat.dtype()})));
    }
    state_ = State::kReducing;
    works_.clear();
    lacking_.assign(buckets_.size(), 0);
    varies_ = varies;
    scale_ = 1;
    if (varies) {
      used_ = Tensor::Zeros({static_cast<int64_t>(parameters_.size())},
                            {.dtype = tensor::DType::kI32});
    }
    for (Place& place : places_) {
      place.unused = true;
      place.in_context = Tensor();
    }
    StartBuckets();
  }
  return Finish();
}

std::vector<std::vector<size_t>> Reducer::buckets() const {
  const async::MutexLock lock(&mutex_);
  std::vector<std::vector<size_t>> result;
  for (const GradientBucket& bucket : buckets_) {
    result.push_back(bucket.parameters);
  }
  return result;
}

}  // namespace hawser::parallel

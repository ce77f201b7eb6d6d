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
#include "async/status_macros.h"
#include "autograd/variable.h"
#include "parallel/first_names.h"
#include "tensor/dtype.h"

namespace hawser::parallel {

using collectives::ReduceOp;
using collectives::Work;

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
  return reducer;
}

Reducer::~Reducer() {
  for (autograd::HookHandle& hook : hooks_) hook.Remove();
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

absl::Status Reducer::BeginPass(const std::vector<size_t>& unused,
                                bool varies) {
  bool complete = false;
  {
    const async::MutexLock lock(&mutex_);
    if (state_ == State::kReducing) return MissingGradients();
    state_ = State::kReducing;
    works_.clear();
    order_.clear();
    varies_ = varies;
    lacking_.clear();
    for (const GradientBucket& bucket : buckets_) {
      lacking_.push_back(bucket.parameters.size());
    }
    num_lacking_ = parameters_.size();
    for (Place& place : places_) place.ready = place.unused = false;
    if (varies) {
      used_ = Tensor::Ones({static_cast<int64_t>(parameters_.size())},
                           {.dtype = tensor::DType::kI32});
    }
    for (const size_t i : unused) {
      Place& place = places_[i];
      // Gradients of earlier passes count.
      const Tensor old = autograd::Grad(parameters_[i].second);
      if (!old.defined()) {
        place.unused = true;
        RETURN_IF_ERROR(place.view.CopyFrom(
            Tensor::Zeros(place.view.shape(), {.dtype = place.view.dtype()})));
        if (varies) used_.data<int32_t>()[i] = 0;
      } else if (!old.is_same(place.view)) {
        RETURN_IF_ERROR(place.view.CopyFrom(old));
        RETURN_IF_ERROR(autograd::SetGrad(parameters_[i].second, place.view));
      }
      MarkReady(i);
    }
    complete = num_lacking_ == 0;
  }
  return complete ? Finish() : absl::OkStatus();
}

absl::Status Reducer::OnGradient(size_t parameter) {
  const Tensor& variable = parameters_[parameter].second;
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
    // The gradient of this pass, added to those of local passes before.
    const Tensor gradient = autograd::Grad(variable);
    if (!gradient.is_same(place.view)) {
      RETURN_IF_ERROR(place.view.CopyFrom(gradient));
      RETURN_IF_ERROR(autograd::SetGrad(variable, place.view));
    }
    order_.push_back(parameter);
    MarkReady(parameter);
    if (num_lacking_ > 0) return absl::OkStatus();
  }
  return Finish();
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
  std::vector<Work> works;
  {
    const async::MutexLock lock(&mutex_);
    works = works_;
  }
  absl::Status status;
  for (const Work& work : works) {
    const absl::Status& done = work.Wait();
    if (status.ok()) status = done;
  }
  const async::MutexLock lock(&mutex_);
  state_ = State::kIdle;
  RETURN_IF_ERROR(status);
  for (size_t i = 0; i < places_.size(); ++i) {
    const Place& place = places_[i];
    if (!place.unused || !varies_) continue;
    if (used_.data<int32_t>()[i] == 0) continue;
    RETURN_IF_ERROR(autograd::SetGrad(parameters_[i].second, place.view));
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
    works_.clear();
    lacking_.assign(buckets_.size(), 0);
    varies_ = varies;
    if (varies) {
      used_ = Tensor::Zeros({static_cast<int64_t>(parameters_.size())},
                            {.dtype = tensor::DType::kI32});
    }
    for (Place& place : places_) place.unused = true;
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

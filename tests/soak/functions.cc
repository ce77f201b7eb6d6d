#include "tests/soak/functions.h"

#include <utility>

#include "absl/status/statusor.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "autograd/ops/elementwise.h"
#include "autograd/variable.h"
#include "rpc/stream/register_stream.h"
#include "tensor/ops/reduce.h"

namespace hawser::tests {
namespace {

absl::StatusOr<double> SumOf(const Tensor& tensor) {
  ASSIGN_OR_RETURN(const Tensor sum, tensor::Sum(tensor));
  return sum.item<float>();
}

absl::StatusOr<Tensor> MakeParameter(double value) {
  Tensor leaf = Tensor::Full({4}, value);
  RETURN_IF_ERROR(autograd::SetRequiresGrad(leaf));
  return leaf;
}

absl::Status Count(rpc::StreamWriter<int64_t> out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) RETURN_IF_ERROR(out.Write(i).Wait());
  return absl::OkStatus();
}

}  // namespace

absl::Status Functions::Register(rpc::FunctionRegistry& registry) {
  RETURN_IF_ERROR(registry.Register(kSum, &SumOf));
  RETURN_IF_ERROR(registry.Register(kMakeParameter, &MakeParameter));
  RETURN_IF_ERROR(
      registry.Register(kScale, [](const Tensor& tensor, double factor) {
        return autograd::MulScalar(tensor, factor);
      }));
  RETURN_IF_ERROR(registry.Register(
      kReadAndKeep,
      [this](rref::RRef<Tensor> reference) -> absl::StatusOr<double> {
        ASSIGN_OR_RETURN(const Tensor value, reference.ToHere());
        Keep(std::move(reference));
        return value.data<float>()[0];
      }));
  return rpc::RegisterStream(registry, kCount, &Count);
}

void Functions::SetKeep(bool keep) {
  std::deque<rref::RRef<Tensor>> dropped;
  async::MutexLock lock(&mutex_);
  keep_ = keep;
  dropped.swap(kept_);
}

void Functions::Keep(rref::RRef<Tensor> reference) {
  rref::RRef<Tensor> replaced;
  async::MutexLock lock(&mutex_);
  if (!keep_) return;
  kept_.push_back(std::move(reference));
  if (kept_.size() <= kMaxKept) return;
  replaced = std::move(kept_.front());
  kept_.pop_front();
}

}  // namespace hawser::tests

#include "benchmarks/groups/overlap_side.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/check.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "benchmarks/groups/mlp_trainer.h"
#include "collectives/process_group.h"
#include "collectives/reduce_op.h"
#include "parallel/gradient_bucket.h"
#include "tensor/tensor.h"

namespace hawser::benchmarks {
namespace {

using collectives::ProcessGroup;
using collectives::ReduceOp;
using collectives::Work;
using tensor::Tensor;

// The hook of the trainer.
class Reductions {
 public:
  // Whether the reductions of a pass begin when its last bucket is ready.
  void set_serial(bool serial) { serial_ = serial; }

  Work Start(ProcessGroup& group, const parallel::GradientBucket& bucket) {
    if (!serial_) return group.AllReduceAsync(bucket.flat, ReduceOp::kAverage);
    Held& held = held_.emplace_back(Held{.flat = bucket.flat});
    const Work work = held.done.future();
    if (bucket.is_last) {
      for (Held& each : std::exchange(held_, {})) {
        group.AllReduceAsync(each.flat, ReduceOp::kAverage)
            .OnReady(
                [done = std::move(each.done)](
                    const absl::Status& status) mutable { done.Set(status); });
      }
    }
    return work;
  }

 private:
  struct Held {
    Tensor flat;
    async::Promise<void> done = {};
  };

  bool serial_ = false;
  std::vector<Held> held_;
};

class Side {
 public:
  static absl::StatusOr<std::unique_ptr<Side>> Create(ProcessGroup& group) {
    auto side = std::make_unique<Side>();
    MlpTrainerOptions options{
        .sizes = {784, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 10},
        .batch = 1280,
        .hook = [reductions = &side->reductions_](
                    ProcessGroup& of, const parallel::GradientBucket& bucket) {
          return reductions->Start(of, bucket);
        }};
    ASSIGN_OR_RETURN(side->trainer_, MlpTrainer::Create(group, options));
    return side;
  }

  absl::StatusOr<absl::Duration> Measure(ProcessGroup& group,
                                         const std::string& request) {
    reductions_.set_serial(request == "serial");
    std::vector<Tensor> buckets;
    if (request == "communication") {
      for (const int64_t elements : trainer_->BucketElements()) {
        buckets.push_back(Tensor::Zeros({elements}));
      }
    }
    const bool communicates = request == "serial" || request == "overlap";
    RETURN_IF_ERROR(group.Barrier());
    const auto begin = std::chrono::steady_clock::now();
    for (const Tensor& bucket : buckets) {
      RETURN_IF_ERROR(group.AllReduce(bucket, ReduceOp::kAverage));
    }
    absl::Duration backward;
    if (buckets.empty()) {
      ASSIGN_OR_RETURN(backward, trainer_->Step(communicates));
    }
    RETURN_IF_ERROR(group.Barrier());
    const auto end = std::chrono::steady_clock::now();
    return request == "backward" ? backward : absl::FromChrono(end - begin);
  }

 private:
  Reductions reductions_;
  std::unique_ptr<MlpTrainer> trainer_;
};

}  // namespace

GroupReply MakeOverlapReply(ProcessGroup& group) {
  auto created = Side::Create(group);
  HAWSER_CHECK(created.ok()) << created.status();
  return [side = std::shared_ptr<Side>(*std::move(created))](
             ProcessGroup& of,
             const std::string& request) -> absl::StatusOr<double> {
    ASSIGN_OR_RETURN(const absl::Duration time, side->Measure(of, request));
    return absl::ToDoubleMilliseconds(time);
  };
}

}  // namespace hawser::benchmarks

// Data-parallel training.

#ifndef HAWSER_PARALLEL_DISTRIBUTED_DATA_PARALLEL_H_
#define HAWSER_PARALLEL_DISTRIBUTED_DATA_PARALLEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "collectives/process_group.h"
#include "nn/module.h"
#include "parallel/communication_hooks.h"
#include "parallel/gradient_bucket.h"
#include "parallel/reducer.h"
#include "tensor/tensor.h"

namespace hawser::parallel {

// What a rank may do that has fewer batches than others.
enum class UnevenInputs {
  // All ranks run the same number of passes. Not checked.
  kNone,
  // It calls Join. Gradients are averages over all ranks, with zeros of those
  // that have joined.
  kAverageOverAll,
  // The same, with averages over the ranks that have not joined.
  kAverageOverActive,
  // It calls Join, which ends the training: Join and the next Forward of the
  // others return kOutOfRange.
  kEndForAll,
};

struct DistributedDataParallelOptions {
  // Gradients are reduced in buckets of this size, the first of another one, so
  // that communication begins early. Not set: DefaultBucketBytes of the model.
  // Smaller buckets hide more of the communication behind the backward pass,
  // larger ones cost less by themselves.
  std::optional<int64_t> bucket_bytes = std::nullopt;
  int64_t first_bucket_bytes = int64_t{1} << 20;
  // Whether a pass may leave parameters without a gradient, others on each
  // rank. A parameter that is used on some ranks gets the average, with zeros
  // of the others; one that is used on none keeps its gradient. Costs a
  // collective in each pass.
  bool find_unused_parameters = false;
  // The graph of every pass is that of the first one, so that it need not be
  // searched for parameters without a gradient, which are then allowed.
  bool static_graph = false;
  // Buffers are those of rank 0 before each pass that reduces gradients.
  bool broadcast_buffers = true;
  // Other than kNone, each rank calls Join when it has no more batches. Costs a
  // small collective in each pass.
  UnevenInputs uneven_inputs = UnevenInputs::kNone;
  CommunicationHook hook = AllReduceHook();
};

// Trains one model on all ranks of a group, each with its own batches: every
// pass ends with the average of the ranks' gradients, so that optimizers take
// the same step on all ranks. The semantics are those of PyTorch's
// DistributedDataParallel.
//
//   ASSIGN_OR_RETURN(auto parallel,
//                    DistributedDataParallel::Create(*model, *group));
//   for (...) {
//     optimizer->ZeroGrad();
//     ASSIGN_OR_RETURN(Tensor loss, parallel->Forward([&] {
//       return Loss(*model, inputs, labels);
//     }));
//     RETURN_IF_ERROR(autograd::Backward(loss));
//     RETURN_IF_ERROR(optimizer->Step());
//   }
//
// Gradients are reduced while the pass computes others. All ranks run the same
// number of passes, or call Join. The gradient of a parameter is a view of a
// bucket, which later passes write to: Clone to keep it.
//
// In a distributed autograd context, Forward announces a pass of
// dist_autograd::Backward, which averages the gradients in the context of each
// rank; Grad does not change:
//
//   ASSIGN_OR_RETURN(auto context, dist_autograd::ContextScope::Open(agent));
//   ASSIGN_OR_RETURN(Tensor loss, parallel->Forward(...));
//   RETURN_IF_ERROR(dist_autograd::Backward(agent, context->id(), {loss}));
//   ASSIGN_OR_RETURN(auto gradients,
//                    dist_autograd::GetGradients(agent, context->id()));
//
// The gradients there stay valid after passes of other contexts. If the pass of
// a rank fails, for example because a worker was lost, the object ends the
// group, so that the passes of the other ranks fail with kAborted and the
// reason, instead of waiting. All passes go one after the other, also those of
// several contexts.
//
// For one thread at a time. Errors of a pass are those of the group, and
// kFailedPrecondition as below. After an error of the group, make a new group
// and a new object.
class DistributedDataParallel {
 public:
  // Checks that all ranks have the same parameters and buffers, and copies the
  // values of rank 0 to the others. All ranks call this. `module` and `group`
  // must outlive the object; do not convert the module afterwards.
  //
  //   kInvalidArgument  no parameter requires a gradient; or the parameters of
  //                     a rank differ from those of rank 0: names the rank and
  //                     the first parameter that differs, on all ranks.
  static absl::StatusOr<std::unique_ptr<DistributedDataParallel>> Create(
      nn::Module& module, collectives::ProcessGroup& group,
      DistributedDataParallelOptions options = {});

  // Runs `forward()`, which returns absl::StatusOr of a tensor or of a vector
  // of tensors: those from which the backward pass starts.
  //
  // Its backward pass must run in the distributed autograd context in which
  // Forward was called, or locally if it was called in none; it fails with
  // kFailedPrecondition otherwise. In a context, parameters that contribute to
  // tensors that were sent to other workers count as used.
  //
  //   kFailedPrecondition  parameters do not contribute to the result, and
  //                        `find_unused_parameters` is off; or the pass before
  //                        is not complete. Names the parameters.
  //   kOutOfRange          ranks have joined, with UnevenInputs::kEndForAll.
  template <class F>
  std::invoke_result_t<F> Forward(F&& forward) {
    RETURN_IF_ERROR(BeforeForward());
    auto result = std::forward<F>(forward)();
    if (!result.ok()) return result;
    RETURN_IF_ERROR(AfterForward(OutputsOf(*result)));
    return result;
  }

  // With uneven_inputs: takes part in the passes of the other ranks, with
  // gradients of zero, until all ranks have called it. Then all ranks get the
  // parameters and buffers of the rank that joined last, of several the
  // highest.
  //
  //   kFailedPrecondition  uneven_inputs is kNone, or a pass is not complete.
  //   kOutOfRange          other ranks have not joined, with
  //                        UnevenInputs::kEndForAll.
  absl::Status Join();

  // While the object lives, the passes that Forward begins add up gradients on
  // this rank, in a context those of the context. The first pass after it
  // reduces the sum.
  class NoSync {
   public:
    explicit NoSync(DistributedDataParallel& parallel) : parallel_(parallel) {
      ++parallel_.num_no_sync_;
    }
    ~NoSync() { --parallel_.num_no_sync_; }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    DistributedDataParallel& parallel_;
  };

  // Indices of the parameters of each bucket, in the order of reduction. The
  // parameters are those that require a gradient, in the order of
  // Module::named_parameters.
  std::vector<std::vector<size_t>> buckets() const {
    return reducer_->buckets();
  }

 private:
  DistributedDataParallel(nn::Module& module, collectives::ProcessGroup& group,
                          DistributedDataParallelOptions options)
      : module_(module), group_(group), options_(std::move(options)) {}

  static std::vector<Tensor> OutputsOf(const Tensor& output) {
    return {output};
  }
  static std::vector<Tensor> OutputsOf(const std::vector<Tensor>& outputs) {
    return outputs;
  }

  absl::Status CheckSameModel();
  absl::Status CopyModel(int root);
  absl::Status BroadcastBuffers(int root);
  absl::Status BeforeForward();
  // The work that all ranks do together before a pass that reduces gradients.
  // Buffers are those of rank `root`.
  absl::Status BeginReducing(int root);
  // What each rank does in this pass: Activity. Tells what this one does.
  // With UnevenInputs::kEndForAll, kOutOfRange names the ranks that have joined
  // if others have not.
  absl::StatusOr<std::vector<uint8_t>> ShareActivity(uint8_t own);
  absl::Status AfterForward(const std::vector<Tensor>& outputs);
  // Indices of the parameters that get no gradient from `outputs`.
  std::vector<size_t> UnusedParameters(
      const std::vector<Tensor>& outputs) const;
  absl::Status UnusedError(const std::vector<size_t>& unused) const;

  nn::Module& module_;
  collectives::ProcessGroup& group_;
  const DistributedDataParallelOptions options_;
  // Those that require a gradient.
  nn::NamedTensors parameters_;
  std::unique_ptr<Reducer> reducer_;
  int num_no_sync_ = 0;
  // Passes that reduce gradients.
  int64_t num_passes_ = 0;
  // Of the gradients of the pass, as Reducer::Pass::scale.
  double scale_ = 1;
  // With static_graph, after the first pass.
  std::optional<std::vector<size_t>> static_unused_;
};

}  // namespace hawser::parallel

#endif  // HAWSER_PARALLEL_DISTRIBUTED_DATA_PARALLEL_H_

// Reduction of gradients during a backward pass.

#ifndef HAWSER_PARALLEL_REDUCER_H_
#define HAWSER_PARALLEL_REDUCER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/mutex.h"
#include "autograd/hook.h"
#include "collectives/process_group.h"
#include "nn/module.h"
#include "parallel/gradient_bucket.h"
#include "tensor/tensor.h"

namespace hawser::parallel {

// The gradients of a model's parameters in buckets. A bucket is reduced once
// the pass has delivered all of its gradients and those of the buckets before,
// while the pass goes on; the last gradient waits for all of them, so that the
// gradients are reduced when the pass has ended. From then on the gradient of a
// parameter is a view of its bucket.
//
// The passes belong to one thread at a time.
class Reducer {
 public:
  struct Options {
    int64_t first_bucket_bytes = 0;
    int64_t bucket_bytes = 0;
    CommunicationHook hook;
  };

  // `group` must outlive this. The parameters are leaves that require a
  // gradient.
  static absl::StatusOr<std::unique_ptr<Reducer>> Create(
      collectives::ProcessGroup& group, nn::NamedTensors parameters,
      Options options);
  // Removes its hooks.
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  // The gradients of the next pass are not reduced.
  absl::Status BeginLocalPass();
  // They are. `unused` are the parameters that get none; `varies`: they may
  // differ by rank and pass. Then a parameter that is used on some ranks gets
  // the average over all, with zeros of the others, and one that is used on
  // none keeps its gradient.
  //
  // kFailedPrecondition: the pass before has not delivered all gradients; names
  // the parameters.
  absl::Status BeginPass(const std::vector<size_t>& unused, bool varies);

  // Assigns the buckets anew, in the order in which the gradients of the last
  // pass came on rank 0, if all came. Called by all ranks.
  absl::Status Rebuild();

  // Reduces zeros for all buckets, in a pass of the other ranks.
  absl::Status ReduceZeros(bool varies);

  // Indices of the parameters of each bucket.
  std::vector<std::vector<size_t>> buckets() const;

 private:
  // Where the gradient of a parameter is.
  struct Place {
    size_t bucket = 0;
    Tensor view;
    bool ready = false;
    bool unused = false;
  };
  enum class State { kIdle, kLocal, kReducing };

  Reducer(collectives::ProcessGroup& group, nn::NamedTensors parameters,
          Options options);

  absl::Status Assign(const std::vector<size_t>& order)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status OnGradient(size_t parameter);
  void MarkReady(size_t parameter) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartBuckets() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Finish();
  absl::Status MissingGradients() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  collectives::ProcessGroup& group_;
  const nn::NamedTensors parameters_;
  const Options options_;
  std::vector<autograd::HookHandle> hooks_;

  mutable async::Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kIdle;
  std::vector<GradientBucket> buckets_ ABSL_GUARDED_BY(mutex_);
  // By parameter.
  std::vector<Place> places_ ABSL_GUARDED_BY(mutex_);
  // Of the pass: gradients that each bucket lacks, and all; the buckets that
  // were started; and 1 for each parameter that is used.
  std::vector<size_t> lacking_ ABSL_GUARDED_BY(mutex_);
  size_t num_lacking_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<collectives::Work> works_ ABSL_GUARDED_BY(mutex_);
  bool varies_ ABSL_GUARDED_BY(mutex_) = false;
  Tensor used_ ABSL_GUARDED_BY(mutex_);
  // Of the last pass.
  std::vector<size_t> order_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::parallel

#endif  // HAWSER_PARALLEL_REDUCER_H_

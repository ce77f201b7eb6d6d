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
#include "dist_autograd/context.h"
#include "nn/module.h"
#include "parallel/gradient_bucket.h"
#include "tensor/tensor.h"

namespace hawser::parallel {

// The gradients of a model's parameters in buckets. A bucket is reduced once
// the pass has delivered all of its gradients and those of the buckets before,
// while the pass goes on. The gradients are reduced when the pass has ended: in
// a local pass, the last gradient waits for all buckets; a distributed pass
// goes on and waits at its end.
//
// After a local pass, the gradient of a parameter is a view of its bucket. In a
// distributed autograd context, gradients are memory of the context, so that
// passes of other contexts do not change them. A distributed pass that fails
// before its gradients are reduced ends the group, since the other ranks wait
// for them.
//
// One pass at a time.
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
  struct Pass {
    // The parameters that get no gradient.
    std::vector<size_t> unused = {};
    // These may differ by rank and pass. Then a parameter that is used on some
    // ranks gets the average over all, with zeros of the others, and one that
    // is used on none keeps its gradient.
    bool varies = false;
    // Factor of the reduced gradients.
    double scale = 1;
  };
  // They are: those of the distributed autograd context in which this is
  // called, or else those of the parameters.
  //
  // kFailedPrecondition: the pass before has not delivered all gradients; names
  // the parameters.
  absl::Status BeginPass(const Pass& pass);

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
    // In a context: its gradient, if it has one.
    Tensor in_context = {};
    bool ready = false;
    bool unused = false;
  };
  enum class State { kIdle, kLocal, kReducing };
  // What callbacks of a context hold: a reducer that may be gone.
  struct Lifetime {
    async::Mutex mutex;
    Reducer* reducer ABSL_GUARDED_BY(mutex) = nullptr;
  };

  Reducer(collectives::ProcessGroup& group, nn::NamedTensors parameters,
          Options options);

  absl::Status Assign(const std::vector<size_t>& order)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status OnGradient(size_t parameter);
  // The gradient of a parameter, of the pass that begins or runs.
  Tensor GradientOf(size_t parameter) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Copies a gradient to its place in a bucket.
  absl::Status Take(size_t parameter, const Tensor& gradient)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // kFailedPrecondition: the gradient was not delivered to where the pass that
  // BeginPass has announced expects it.
  absl::Status CheckContext(size_t parameter) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the group if a pass of `context` fails before its gradients are
  // reduced.
  void WatchContext(const std::shared_ptr<dist_autograd::Context>& context)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OnFailedPass(const dist_autograd::Context* context,
                    const absl::Status& error);
  void MarkReady(size_t parameter) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void StartBuckets() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for all buckets and ends the pass.
  absl::Status Finish();
  // Ends the pass, which is in `context` or local, with this result of the
  // reductions.
  absl::Status EndPass(const dist_autograd::Context* context,
                       const absl::Status& reduced);
  // Gives the reduced gradients to the parameters or the context.
  absl::Status ReturnGradients() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status MissingGradients() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  collectives::ProcessGroup& group_;
  const nn::NamedTensors parameters_;
  const Options options_;
  const std::shared_ptr<Lifetime> lifetime_ = std::make_shared<Lifetime>();
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
  double scale_ ABSL_GUARDED_BY(mutex_) = 1;
  Tensor used_ ABSL_GUARDED_BY(mutex_);
  // Null in a local pass, and between passes.
  std::shared_ptr<dist_autograd::Context> context_ ABSL_GUARDED_BY(mutex_);
  std::weak_ptr<dist_autograd::Context> watched_ ABSL_GUARDED_BY(mutex_);
  // Of the last pass.
  std::vector<size_t> order_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::parallel

#endif  // HAWSER_PARALLEL_REDUCER_H_

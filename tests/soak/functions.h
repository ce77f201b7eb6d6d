// The functions that every process of the soak job serves.

#ifndef HAWSER_TESTS_SOAK_FUNCTIONS_H_
#define HAWSER_TESTS_SOAK_FUNCTIONS_H_

#include <cstddef>
#include <cstdint>
#include <deque>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "async/mutex.h"
#include "rpc/functions/function.h"
#include "rpc/functions/function_registry.h"
#include "rpc/stream/stream_function.h"
#include "rref/rref.h"
#include "tensor/tensor.h"

namespace hawser::tests {

// Returns the sum of the elements.
inline constexpr rpc::Function<double(Tensor)> kSum{"soak.Sum"};
// Makes a leaf, f32[4], that requires a gradient.
inline constexpr rpc::Function<Tensor(double value)> kMakeParameter{
    "soak.MakeParameter"};
// Returns `tensor` * `factor`; differentiable.
inline constexpr rpc::Function<Tensor(Tensor tensor, double factor)> kScale{
    "soak.Scale"};
// Returns the first element of the value, and keeps the reference until later
// calls replace it.
inline constexpr rpc::Function<double(rref::RRef<Tensor>)> kReadAndKeep{
    "soak.ReadAndKeep"};
// The numbers from 0 to `count` - 1.
inline constexpr rpc::StreamFunction<int64_t(int64_t count)> kCount{
    "soak.Count"};

// Implementation of the functions, with the references that kReadAndKeep keeps.
// Thread-safe.
class Functions {
 public:
  // This object must outlive the calls.
  absl::Status Register(rpc::FunctionRegistry& registry);

  // Drops the references kept so far, and keeps further ones only if `keep`.
  void SetKeep(bool keep);

 private:
  static constexpr size_t kMaxKept = 16;

  void Keep(rref::RRef<Tensor> reference);

  async::Mutex mutex_;
  bool keep_ ABSL_GUARDED_BY(mutex_) = true;
  std::deque<rref::RRef<Tensor>> kept_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::tests

#endif  // HAWSER_TESTS_SOAK_FUNCTIONS_H_

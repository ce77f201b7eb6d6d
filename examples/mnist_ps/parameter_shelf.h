#ifndef HAWSER_EXAMPLES_MNIST_PS_PARAMETER_SHELF_H_
#define HAWSER_EXAMPLES_MNIST_PS_PARAMETER_SHELF_H_

#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "async/mutex.h"
#include "rpc/agent/agent.h"
#include "rref/rref.h"
#include "tensor/tensor.h"

namespace hawser::examples::mnist_ps {

// The named parameters that a server owns.
//
// Thread-safe. Holds references, so it must be emptied before the worker shuts
// down.
class ParameterShelf {
 public:
  // Creates a parameter that requires gradients and returns a reference to it.
  // kAlreadyExists if the name is taken.
  absl::StatusOr<rref::RRef<Tensor>> Create(rpc::Agent& agent,
                                            const std::string& name,
                                            const Tensor& initial);

  // Completes when the parameter has been created.
  async::Future<rref::RRef<Tensor>> Find(const std::string& name);

  void Clear();

 private:
  // Created by the first call of Create or Find for the name.
  struct Entry {
    async::Promise<rref::RRef<Tensor>> creation;
    // Stored, so that every caller of Find gets a copy of the result.
    async::Future<rref::RRef<Tensor>> reference = creation.future();
  };

  async::Mutex mutex_;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::examples::mnist_ps

#endif  // HAWSER_EXAMPLES_MNIST_PS_PARAMETER_SHELF_H_

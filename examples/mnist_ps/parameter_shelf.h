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
// Thread-safe. Holds references, and so must be emptied before the worker shuts
// down.
class ParameterShelf {
 public:
  // Makes a parameter that requires gradients and gives a reference to it.
  // kAlreadyExists if the name is taken.
  absl::StatusOr<rref::RRef<Tensor>> Create(rpc::Agent& agent,
                                            const std::string& name,
                                            const Tensor& initial);

  // Completes when the parameter is there.
  async::Future<rref::RRef<Tensor>> Find(const std::string& name);

  void Clear();

 private:
  // An entry is made by whoever comes first, the creator or a searcher.
  struct Entry {
    async::Promise<rref::RRef<Tensor>> creation;
    // Kept, so that every searcher gets a copy of the result.
    async::Future<rref::RRef<Tensor>> reference = creation.future();
  };

  async::Mutex mutex_;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::examples::mnist_ps

#endif  // HAWSER_EXAMPLES_MNIST_PS_PARAMETER_SHELF_H_

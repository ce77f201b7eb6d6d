#include "examples/mnist_ps/parameter_shelf.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "autograd/variable.h"

namespace hawser::examples::mnist_ps {

absl::StatusOr<rref::RRef<Tensor>> ParameterShelf::Create(
    rpc::Agent& agent, const std::string& name, const Tensor& initial) {
  const Tensor parameter = autograd::Detach(initial);
  RETURN_IF_ERROR(autograd::SetRequiresGrad(parameter));
  ASSIGN_OR_RETURN(rref::RRef<Tensor> reference,
                   rref::MakeLocal(agent, parameter));
  async::Promise<rref::RRef<Tensor>> creation;
  {
    const async::MutexLock lock(&mutex_);
    Entry& entry = entries_[name];
    if (!entry.creation.valid()) {
      return absl::AlreadyExistsError(
          absl::StrCat("the parameter ", name, " already exists"));
    }
    creation = std::move(entry.creation);
  }
  // Without the lock, since this runs the callbacks of Find's callers.
  creation.Set(reference);
  return reference;
}

async::Future<rref::RRef<Tensor>> ParameterShelf::Find(
    const std::string& name) {
  const async::MutexLock lock(&mutex_);
  return entries_[name].reference;
}

void ParameterShelf::Clear() {
  std::map<std::string, Entry> entries;
  const async::MutexLock lock(&mutex_);
  std::swap(entries, entries_);
}

}  // namespace hawser::examples::mnist_ps

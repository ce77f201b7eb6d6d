// For builds without MPI.
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "collectives/backend.h"
#include "collectives/mpi/backend.h"
#include "store/store.h"

namespace hawser::collectives {
namespace {

absl::Status WithoutMpi() {
  return absl::UnimplementedError(
      "this program was built without MPI: install libopenmpi-dev and "
      "openmpi-bin, and build it with --config=mpi");
}

}  // namespace

absl::StatusOr<MpiProcess> GetMpiProcess() { return WithoutMpi(); }

absl::StatusOr<std::unique_ptr<Backend>> MakeMpiBackend(
    store::Store& /*store*/, int /*rank*/, int /*size*/,
    absl::Duration /*timeout*/) {
  return WithoutMpi();
}

}  // namespace hawser::collectives

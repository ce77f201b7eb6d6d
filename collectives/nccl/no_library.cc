// For builds without NCCL.
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "collectives/nccl/library.h"
#include "collectives/nccl/system_library.h"

namespace hawser::collectives {

absl::StatusOr<std::unique_ptr<NcclLibrary>> MakeSystemNcclLibrary(
    int /*device*/) {
  return absl::UnimplementedError(
      "this program was built without NCCL: build it with --config=cuda, on a "
      "machine with nccl.h in the include folder of the CUDA toolkit or in "
      "/usr/include");
}

}  // namespace hawser::collectives

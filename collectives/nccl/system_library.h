// The NCCL of the machine.

#ifndef HAWSER_COLLECTIVES_NCCL_SYSTEM_LIBRARY_H_
#define HAWSER_COLLECTIVES_NCCL_SYSTEM_LIBRARY_H_

#include <memory>

#include "absl/status/statusor.h"
#include "collectives/nccl/library.h"

namespace hawser::collectives {

// NCCL on GPU `device`.
//
//   kFailedPrecondition  there is no such GPU, or no driver.
//   kUnimplemented       the program was built without NCCL.
absl::StatusOr<std::unique_ptr<NcclLibrary>> MakeSystemNcclLibrary(int device);

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_NCCL_SYSTEM_LIBRARY_H_

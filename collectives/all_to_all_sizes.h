// Agreement of the ranks on the sizes of an all-to-all.

#ifndef HAWSER_COLLECTIVES_ALL_TO_ALL_SIZES_H_
#define HAWSER_COLLECTIVES_ALL_TO_ALL_SIZES_H_

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "async/clock.h"
#include "collectives/backend.h"

namespace hawser::collectives {

// Compares what each rank sends with what the other receives, for backends
// that would wait for bytes that do not come. Returns the largest size of all
// pairs. An all-gather on `backend`, which serves memory of the CPU.
//
// kInvalidArgument on all ranks: two sizes differ; names both ranks. Other
// errors are those of the all-gather.
absl::StatusOr<uint64_t> CompareSizes(Backend& backend,
                                      std::span<const ConstBytes> inputs,
                                      std::span<const MutableBytes> outputs,
                                      async::MonotonicTime deadline);

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_ALL_TO_ALL_SIZES_H_

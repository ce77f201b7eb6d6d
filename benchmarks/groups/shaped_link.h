// A network link of limited rate between processes of one machine.

#ifndef HAWSER_BENCHMARKS_GROUPS_SHAPED_LINK_H_
#define HAWSER_BENCHMARKS_GROUPS_SHAPED_LINK_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fs/unique_fd.h"

namespace hawser::benchmarks {

// Two network namespaces joined by a pair of virtual Ethernet devices, each of
// which sends at a limited rate: a token bucket filter with a burst of 128 KiB.
// The namespaces have no names, so that they and their devices vanish with this
// object and the last process in them, however that ends.
class ShapedLink {
 public:
  // Runs `ip` and `tc`. The calling thread stays in its namespace.
  //
  //   kFailedPrecondition  not permitted, or a tool or a part of the kernel is
  //                        missing; says what to do.
  static absl::StatusOr<ShapedLink> Create(int mbit_per_s);

  // Moves the calling thread, and threads and processes that it starts later,
  // to end 0 or 1.
  absl::Status Enter(int end) const;

  // The address of an end, which only the two ends reach.
  static std::string Address(int end);

 private:
  fs::UniqueFd namespaces_[2];
};

}  // namespace hawser::benchmarks

#endif  // HAWSER_BENCHMARKS_GROUPS_SHAPED_LINK_H_

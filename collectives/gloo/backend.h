// Groups between machines, over Gloo's TCP transport.

#ifndef HAWSER_COLLECTIVES_GLOO_BACKEND_H_
#define HAWSER_COLLECTIVES_GLOO_BACKEND_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "collectives/backend.h"
#include "store/store.h"

namespace hawser::collectives {

struct GlooOptions {
  // The address or name of this machine at which the other ranks reach it.
  std::string host = "127.0.0.1";
  // A network interface, "eth0", instead of `host`.
  std::string interface = "";
  // Must be set to connect through anything but loopback: the connections are
  // neither encrypted nor authenticated, so every machine that can connect must
  // be trusted.
  bool allow_insecure_network = false;
  // Ranks with the same name, of at most 255 bytes, exchange data over shared
  // memory. Empty: those of one machine, pid namespace and user. Another name
  // for each rank: none.
  std::string machine = "";
};

// Connects rank `rank` of `size` to all others; each rank calls it once, with
// the same keys: `store` is used by this group alone, as a PrefixStore, and
// only during the call.
//
// Uses two connections and one thread per other rank, and two more threads.
// Ignores SIGPIPE in the process if it has the default action.
//
// Ranks of one machine exchange data over shared memory, as those of the host
// backend do, if they can map it. What all of them need crosses the network
// once. Messages always take a connection.
//
// Reductions combine the operands of each machine in the order of the ranks,
// and then the results of the machines in that of their first ranks. Results
// are equal bit by bit on all ranks and do not depend on sizes or on timing.
// Those of 16-bit types are rounded once if each machine has one rank, and
// otherwise also on each machine.
//
// A send completes once its receiver has taken the message. Small messages are
// kept by the receiver until then; others stay with the sender.
//
// A rank that dies is noticed at once, one that is stopped or cut off at the
// deadline of an operation that needs it: the error names ranks that do not
// react, or else those that have not begun the operation. The destructor takes
// up to a second if another rank does not react.
//
// Errors:
//   kDeadlineExceeded  names the ranks that have not joined within `timeout`.
//   kUnavailable       an address cannot be used or reached.
//   kInvalidArgument   rank and size do not fit.
//   kFailedPrecondition  the host is not loopback, and the options do not allow
//                      that.
// and those of the store.
absl::StatusOr<std::unique_ptr<Backend>> MakeGlooBackend(
    store::Store& store, int rank, int size, absl::Duration timeout,
    const GlooOptions& options = {});

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_GLOO_BACKEND_H_

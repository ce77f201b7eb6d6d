// A network inside the process, with faults on demand.

#ifndef HAWSER_RPC_INPROC_NETWORK_H_
#define HAWSER_RPC_INPROC_NETWORK_H_

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/time/time.h"
#include "async/clock.h"
#include "async/executor.h"
#include "rpc/transport/transport.h"

namespace hawser::rpc {

// What may happen to the messages of calls. Chances are in [0, 1].
struct InprocFaults {
  double drop_request = 0;
  double drop_reply = 0;
  // The message arrives twice, each copy with its own delay.
  double duplicate_request = 0;
  double duplicate_reply = 0;
  // Each message takes a time drawn between these two, so that messages may
  // overtake each other.
  absl::Duration min_delay = absl::ZeroDuration();
  absl::Duration max_delay = absl::ZeroDuration();
};

struct InprocNetworkOptions {
  uint64_t seed = 1;
  // Runs handlers and the callbacks of calls. Both outlive the network and its
  // transports.
  async::Executor* executor = nullptr;
  async::Clock* clock = nullptr;
};

// Connects transports of one process. Addresses have the form "inproc:3"; what
// Listen is given is ignored.
//
// What happens is drawn from the seed in the order of events: with a
// ManualExecutor and a SimulatedClock driven by one thread, a run repeats
// exactly. Nothing runs in the thread that makes a call.
//
// Thread-safe. Transports may outlive the network object.
class InprocNetwork {
 public:
  explicit InprocNetwork(InprocNetworkOptions options);
  ~InprocNetwork();

  std::unique_ptr<Transport> NewTransport();

  // Of all calls without faults of their own.
  void SetFaults(const InprocFaults& faults);
  // Of the calls of one method: "/hawser.v1.RRefService/Control".
  void SetMethodFaults(std::string_view path, const InprocFaults& faults);

  // The process at `address` dies: calls from and to it fail with kUnavailable
  // now and later.
  void Crash(std::string_view address);
  // The connections between the two break: their calls fail with kUnavailable
  // now. Later ones go through.
  void Break(std::string_view a, std::string_view b);
  // Messages from one to the other, requests and replies, vanish until this is
  // undone; calls wait for their deadlines.
  void Block(std::string_view from, std::string_view to, bool blocked);
  // Both ways.
  void Partition(std::string_view a, std::string_view b, bool partitioned);

  // Opaque to users.
  class State;

 private:
  const std::shared_ptr<State> state_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_INPROC_NETWORK_H_

// An in-process network with fault injection.

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

// Faults of the messages of calls. Probabilities are in [0, 1].
struct InprocFaults {
  double drop_request = 0;
  double drop_reply = 0;
  // Probability that the request arrives twice, each copy with its own delay.
  double duplicate_request = 0;
  double duplicate_reply = 0;
  // Bounds of the random delay of each message. Messages may overtake each
  // other.
  absl::Duration min_delay = absl::ZeroDuration();
  absl::Duration max_delay = absl::ZeroDuration();
};

struct InprocNetworkOptions {
  uint64_t seed = 1;
  // Runs handlers and the callbacks of calls. Executor and clock must outlive
  // the network and its transports.
  async::Executor* executor = nullptr;
  async::Clock* clock = nullptr;
};

// Connects transports of one process. Addresses have the form "inproc:3"; the
// address passed to Listen is ignored.
//
// Faults are drawn from the seed in the order of events, so a run with a
// ManualExecutor and a SimulatedClock, driven by one thread, is deterministic.
// Handlers and callbacks never run in the thread that makes a call.
//
// Thread-safe. Transports may outlive the network object.
class InprocNetwork {
 public:
  explicit InprocNetwork(InprocNetworkOptions options);
  ~InprocNetwork();

  // `clock` is that of the transport's machine, by which the deadlines of its
  // calls pass; it must outlive the network and the transport. Null: the
  // network's.
  std::unique_ptr<Transport> NewTransport(async::Clock* clock = nullptr);

  // Sets the faults of all methods without faults of their own.
  void SetFaults(const InprocFaults& faults);
  // Sets the faults of one method, such as "/hawser.v1.RRefService/Control".
  void SetMethodFaults(std::string_view path, const InprocFaults& faults);

  // Simulates the death of the process at `address`: current and later calls
  // from and to it fail with kUnavailable.
  void Crash(std::string_view address);
  // Breaks the connections between the two: their current calls fail with
  // kUnavailable. Later calls succeed.
  void Break(std::string_view a, std::string_view b);
  // Drops messages, requests and replies, from one to the other until this is
  // undone. Calls end at their deadlines.
  void Block(std::string_view from, std::string_view to, bool blocked);
  // Blocks both directions.
  void Partition(std::string_view a, std::string_view b, bool partitioned);

  // Internal.
  class State;

 private:
  const std::shared_ptr<State> state_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_INPROC_NETWORK_H_

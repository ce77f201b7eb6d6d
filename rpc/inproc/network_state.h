// Internal state of an InprocNetwork.

#ifndef HAWSER_RPC_INPROC_NETWORK_STATE_H_
#define HAWSER_RPC_INPROC_NETWORK_STATE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "async/clock.h"
#include "async/mutex.h"
#include "async/random_source.h"
#include "rpc/inproc/network.h"
#include "rpc/transport/cancellation.h"
#include "rpc/transport/gate.h"
#include "rpc/transport/payload.h"
#include "rpc/transport/transport.h"

namespace hawser::rpc::internal {

// The end of one transport.
struct InprocNode {
  InprocNode(std::string node_address, async::Clock& node_clock)
      : address(std::move(node_address)), clock(node_clock) {}

  const std::string address;
  async::Clock& clock;
  // Entered by handlers and callbacks; closed by Shutdown.
  Gate gate;

  async::Mutex mutex;
  std::map<std::string, TransportMethod, std::less<>> methods
      ABSL_GUARDED_BY(mutex);
};

// One call from its start until its callback has run.
class InprocCall : public std::enable_shared_from_this<InprocCall> {
 public:
  InprocCall(std::shared_ptr<InprocNetwork::State> network,
             std::shared_ptr<InprocNode> source, std::string destination,
             std::string path, async::MonotonicTime deadline,
             Connection::Done done)
      : network_(std::move(network)),
        source_(std::move(source)),
        destination_(std::move(destination)),
        path_(std::move(path)),
        deadline_(deadline),
        done_(std::move(done)) {}

  // Set once, when the call enters the network.
  void set_number(uint64_t number) { number_ = number; }
  uint64_t number() const { return number_; }

  const std::string& source() const { return source_->address; }
  const std::string& destination() const { return destination_; }
  const std::string& path() const { return path_; }
  // The deadline on the clock of another machine.
  async::MonotonicTime DeadlineOn(const async::Clock& clock) const;
  const std::shared_ptr<Cancellation>& cancellation() const {
    return cancellation_;
  }
  InprocNetwork::State& network() const { return *network_; }

  // Starts the deadline's timer. Returns false if the call has already
  // completed.
  bool Begin();
  // Sets the outcome, unless it is set, and schedules the callback.
  void Complete(absl::StatusOr<Payload> outcome);
  // Same, but runs the callback before returning, unless another thread runs
  // it. The source's gate must be open, entered by the caller, or about to be
  // closed by it.
  void CompleteNow(absl::Status status);

 private:
  bool Settle(absl::StatusOr<Payload> outcome);
  void RunDone();

  const std::shared_ptr<InprocNetwork::State> network_;
  const std::shared_ptr<InprocNode> source_;
  const std::string destination_;
  const std::string path_;
  const async::MonotonicTime deadline_;
  uint64_t number_ = 0;
  const std::shared_ptr<Cancellation> cancellation_ =
      std::make_shared<Cancellation>();

  async::Mutex mutex_;
  bool settled_ ABSL_GUARDED_BY(mutex_) = false;
  absl::StatusOr<Payload> outcome_ ABSL_GUARDED_BY(mutex_);
  // Null once it has started.
  Connection::Done done_ ABSL_GUARDED_BY(mutex_);
  async::TimerId timer_ ABSL_GUARDED_BY(mutex_){};
  bool has_timer_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hawser::rpc::internal

namespace hawser::rpc {

class InprocNetwork::State : public std::enable_shared_from_this<State> {
 public:
  explicit State(const InprocNetworkOptions& options)
      : clock_(*options.clock),
        executor_(*options.executor),
        random_(options.seed) {}

  async::Clock& clock() const { return clock_; }
  async::Executor& executor() const { return executor_; }

  std::shared_ptr<internal::InprocNode> AddNode(async::Clock& clock);
  void RemoveNode(const internal::InprocNode& node);

  // Registers the call until Forget. Call before Send.
  void Enter(const std::shared_ptr<internal::InprocCall>& call);
  // Sends a request to its destination, or drops it.
  void Send(std::shared_ptr<internal::InprocCall> call, Payload request);
  // Sends the reply back, or drops it.
  void SendReply(const std::shared_ptr<internal::InprocCall>& call,
                 const absl::StatusOr<Payload>& reply);
  void Forget(const std::shared_ptr<internal::InprocCall>& call);

  void SetFaults(const InprocFaults& faults);
  void SetMethodFaults(std::string_view path, const InprocFaults& faults);
  void Crash(std::string_view address);
  void Break(std::string_view a, std::string_view b);
  void Block(std::string_view from, std::string_view to, bool blocked);
  // kUnavailable unless messages pass between the two in both directions.
  absl::Status CheckPath(const std::string& from, const std::string& to);

  // Ends the calls made by `node` with kCancelled, and the calls to it with
  // kUnavailable.
  void EndCallsOf(const internal::InprocNode& node);

 private:
  // Draws the delays of the arriving copies of a message; empty if it is lost.
  std::vector<absl::Duration> DrawCopies(double drop, double duplicate,
                                         const InprocFaults& faults)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  const InprocFaults& FaultsOf(std::string_view path) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<std::shared_ptr<internal::InprocCall>> CallsBetween(
      std::string_view a, std::string_view b);

  void RunAfter(absl::Duration delay, absl::AnyInvocable<void() &&> action);
  void Deliver(const std::shared_ptr<internal::InprocCall>& call,
               Payload request);

  async::Clock& clock_;
  async::Executor& executor_;

  async::Mutex mutex_;
  async::RandomSource random_ ABSL_GUARDED_BY(mutex_);
  InprocFaults faults_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, InprocFaults, std::less<>> method_faults_
      ABSL_GUARDED_BY(mutex_);
  uint64_t last_node_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::shared_ptr<internal::InprocNode>, std::less<>>
      nodes_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string, std::less<>> crashed_ ABSL_GUARDED_BY(mutex_);
  // Pairs of source and destination.
  std::set<std::pair<std::string, std::string>> blocked_
      ABSL_GUARDED_BY(mutex_);
  // Calls in the order in which they were made, so that runs are deterministic.
  uint64_t last_call_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, std::shared_ptr<internal::InprocCall>> calls_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_INPROC_NETWORK_STATE_H_

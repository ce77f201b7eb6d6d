// ControlCalls for unit tests, whose messages a test ends.

#ifndef HAWSER_RPC_TESTING_FAKES_FAKE_CONTROL_CALLS_H_
#define HAWSER_RPC_TESTING_FAKES_FAKE_CONTROL_CALLS_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "async/clock.h"
#include "rpc/agent/members/control_calls.h"
#include "rpc/peers/peer.h"

namespace hawser::rpc {

// Keeps heartbeats and leave notices until the test ends them. For one thread.
class FakeControlCalls final : public ControlCalls {
 public:
  struct Sent {
    std::shared_ptr<Peer> peer;
    async::MonotonicTime deadline;
    // To be run once with the outcome.
    Done done;
  };

  // The oldest heartbeat, or leave notice, that was not taken; nullopt if there
  // is none.
  std::optional<Sent> TakePing() { return Take(pings_); }
  std::optional<Sent> TakeLeaveNotice() { return Take(leave_notices_); }
  // Heartbeats, and leave notices, sent and not taken.
  size_t num_pings() const { return pings_.size(); }
  size_t num_leave_notices() const { return leave_notices_.size(); }

  // Ends later heartbeats at once with `status`, for code that waits for their
  // outcome.
  void EndPings(absl::Status status) { ping_outcome_ = std::move(status); }

  void Ping(const std::shared_ptr<Peer>& peer, async::MonotonicTime deadline,
            Done done) override {
    if (ping_outcome_.has_value()) {
      std::move(done)(*ping_outcome_);
      return;
    }
    pings_.push_back({peer, deadline, std::move(done)});
  }
  void NotifyLeave(const std::shared_ptr<Peer>& peer,
                   async::MonotonicTime deadline, Done done) override {
    leave_notices_.push_back({peer, deadline, std::move(done)});
  }

 private:
  static std::optional<Sent> Take(std::deque<Sent>& queue) {
    if (queue.empty()) return std::nullopt;
    Sent sent = std::move(queue.front());
    queue.pop_front();
    return sent;
  }

  std::deque<Sent> pings_;
  std::deque<Sent> leave_notices_;
  std::optional<absl::Status> ping_outcome_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TESTING_FAKES_FAKE_CONTROL_CALLS_H_

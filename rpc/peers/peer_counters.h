// Counters of the calls and bytes exchanged with one peer.

#ifndef HAWSER_RPC_PEERS_PEER_COUNTERS_H_
#define HAWSER_RPC_PEERS_PEER_COUNTERS_H_

#include <atomic>
#include <cstdint>

namespace hawser::rpc {

struct PeerTotals {
  // Requests sent to the peer: calls of functions, and each attempt of a call
  // of a service's method, but not heartbeats.
  uint64_t sent = 0;
  // Sent requests that have ended.
  uint64_t ended = 0;
  // Sent requests that ended without a reply or with an error.
  uint64_t failed = 0;
  // Admitted requests of the peer, of those that count towards its quota
  // (MethodOptions::counted).
  uint64_t served = 0;
  // Bytes of messages in both directions, including tensors, over any
  // transport.
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
};

// Thread-safe. All on one cache line.
class alignas(64) PeerCounters {
 public:
  // As the client.
  void AddRequest(uint64_t bytes) {
    Add(sent_, 1);
    Add(bytes_sent_, bytes);
  }
  void AddReply(uint64_t bytes) { Add(bytes_received_, bytes); }
  void AddFailure() { Add(failed_, 1); }
  void AddEnd() { Add(ended_, 1); }

  // As the server.
  void AddServed(uint64_t request_bytes) {
    Add(served_, 1);
    Add(bytes_received_, request_bytes);
  }
  void AddAnswer(uint64_t bytes) { Add(bytes_sent_, bytes); }

  // Consistent: ended <= sent and failed <= ended.
  PeerTotals totals() const {
    PeerTotals totals;
    // Read in the reverse of the order in which a request is counted.
    totals.failed = failed_.load(std::memory_order_acquire);
    totals.ended = ended_.load(std::memory_order_acquire);
    totals.sent = sent_.load(std::memory_order_acquire);
    totals.served = served_.load(std::memory_order_relaxed);
    totals.bytes_sent = bytes_sent_.load(std::memory_order_relaxed);
    totals.bytes_received = bytes_received_.load(std::memory_order_relaxed);
    return totals;
  }

 private:
  static void Add(std::atomic<uint64_t>& counter, uint64_t value) {
    counter.fetch_add(value, std::memory_order_release);
  }

  std::atomic<uint64_t> sent_{0};
  std::atomic<uint64_t> ended_{0};
  std::atomic<uint64_t> failed_{0};
  std::atomic<uint64_t> served_{0};
  std::atomic<uint64_t> bytes_sent_{0};
  std::atomic<uint64_t> bytes_received_{0};
};

static_assert(sizeof(PeerCounters) == 64);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_PEERS_PEER_COUNTERS_H_

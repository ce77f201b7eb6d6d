#ifndef HAWSER_STORE_GRPC_SERVER_LIMITS_H_
#define HAWSER_STORE_GRPC_SERVER_LIMITS_H_

#include <cstddef>

namespace hawser::store {

// Limits on the resources that clients of a store server hold, besides what is
// stored (StoreLimits). A client is a worker that its certificate names;
// without TLS, a connection. A request above a limit fails with
// kResourceExhausted, naming the limit.
struct StoreServerLimits {
  // Calls that wait for keys, of all clients and of one. A worker waits in a
  // few. A connection takes 256 calls at once, so that one whose calls wait
  // still takes those that change keys.
  int max_waiting_calls = 16384;
  int max_waiting_calls_per_client = 192;
  // What such calls hold: each key twice, with 128 bytes.
  size_t max_waiting_bytes = size_t{1} << 30;
  size_t max_waiting_bytes_per_client = size_t{64} << 20;
  // Keys and values that one client wrote last, counted as
  // StoreLimits::max_total_bytes, so that no client alone fills the store.
  size_t max_stored_bytes_per_client = size_t{512} << 20;
  // Memory of all messages that are being received or sent. Under pressure gRPC
  // first reads less, then closes idle connections and cancels calls, which
  // clients make again.
  size_t memory_quota_bytes = size_t{1} << 30;
};

}  // namespace hawser::store

#endif  // HAWSER_STORE_GRPC_SERVER_LIMITS_H_

#ifndef HAWSER_STORE_GRPC_SERVER_LIMITS_H_
#define HAWSER_STORE_GRPC_SERVER_LIMITS_H_

#include <cstddef>

namespace hawser::store {

// Limits on the resources that clients of a store server use, besides the
// stored data (StoreLimits). A client is the worker named by a certificate or,
// without TLS, a connection. A request above a limit fails with
// kResourceExhausted, naming the limit.
struct StoreServerLimits {
  // Keys that one call waits for, watches or checks. A change of one key may
  // search all keys of each call that waits for it.
  int max_keys_per_call = 16384;
  // Calls that wait for keys or watch them, in total and per client. A worker
  // has a few. A connection allows 256 concurrent calls, so that calls that
  // change keys still go through beside waiting ones.
  int max_waiting_calls = 65536;
  int max_waiting_calls_per_client = 192;
  // Memory of such calls: each key, with the known value of a watched one,
  // counts twice, plus 128 bytes.
  size_t max_waiting_bytes = size_t{256} << 20;
  size_t max_waiting_bytes_per_client = size_t{64} << 20;
  // Values in replies that clients have not read yet.
  size_t max_reply_bytes = size_t{256} << 20;
  size_t max_reply_bytes_per_client = size_t{64} << 20;
  // Keys and values last written by one client, counted as in
  // StoreLimits::max_total_bytes, so that a single client cannot fill the
  // store.
  size_t max_stored_bytes_per_client = size_t{512} << 20;
  // Memory of all messages being received. Under pressure gRPC first
  // reads less, then closes idle connections and cancels calls, which clients
  // retry.
  size_t memory_quota_bytes = size_t{512} << 20;
  // While the process uses more memory and grows, the connection that has sent
  // the most bytes which complete no messages is closed; likewise above a third
  // of it, if the process grows by 8 times what all clients send. 0: three
  // quarters of what the process may use.
  size_t memory_watermark_bytes = 0;
};

}  // namespace hawser::store

#endif  // HAWSER_STORE_GRPC_SERVER_LIMITS_H_

// Counters of the tensor bytes transferred and the copies made.

#ifndef HAWSER_RPC_TRANSPORT_TRANSFER_COUNTERS_H_
#define HAWSER_RPC_TRANSPORT_TRANSFER_COUNTERS_H_

#include <atomic>
#include <cstdint>

namespace hawser::rpc {

// A snapshot of the counters.
struct TransferTotals {
  // Bytes of tensor elements in messages sent and received.
  uint64_t tensor_bytes_sent = 0;
  uint64_t tensor_bytes_received = 0;
  // Bytes that Hawser copied in order to send them: tensors that were not dense
  // or not on the CPU, and tensors small enough to be sent with the message
  // body.
  uint64_t tensor_bytes_copied_to_send = 0;
  // Bytes copied on receipt: the bytes received but for those that a handler
  // read where they arrived.
  uint64_t tensor_bytes_copied_to_receive = 0;
};

// Thread-safe.
class TransferCounters {
 public:
  void AddSent(uint64_t bytes) { Add(sent_, bytes); }
  void AddReceived(uint64_t bytes) { Add(received_, bytes); }
  void AddCopiedToSend(uint64_t bytes) { Add(copied_to_send_, bytes); }
  void AddCopiedToReceive(uint64_t bytes) { Add(copied_to_receive_, bytes); }

  TransferTotals totals() const {
    return {.tensor_bytes_sent = sent_.load(std::memory_order_relaxed),
            .tensor_bytes_received = received_.load(std::memory_order_relaxed),
            .tensor_bytes_copied_to_send =
                copied_to_send_.load(std::memory_order_relaxed),
            .tensor_bytes_copied_to_receive =
                copied_to_receive_.load(std::memory_order_relaxed)};
  }

 private:
  static void Add(std::atomic<uint64_t>& counter, uint64_t bytes) {
    counter.fetch_add(bytes, std::memory_order_relaxed);
  }

  std::atomic<uint64_t> sent_{0};
  std::atomic<uint64_t> received_{0};
  std::atomic<uint64_t> copied_to_send_{0};
  std::atomic<uint64_t> copied_to_receive_{0};
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TRANSPORT_TRANSFER_COUNTERS_H_

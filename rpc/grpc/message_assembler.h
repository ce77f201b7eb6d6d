// Long requests in pieces: the receiver's end of proto/pieces.proto.

#ifndef HAWSER_RPC_GRPC_MESSAGE_ASSEMBLER_H_
#define HAWSER_RPC_GRPC_MESSAGE_ASSEMBLER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "grpcpp/support/byte_buffer.h"
#include "rpc/payload.h"
#include "tensor/storage.h"

namespace hawser::rpc {

// Memory for messages of which not all has come. Thread-safe.
class AssemblyBudget {
 public:
  explicit AssemblyBudget(size_t bytes) : bytes_(bytes) {}

  // False: there is not so much left.
  bool Reserve(size_t bytes) {
    size_t left = left_.load(std::memory_order_relaxed);
    do {
      if (bytes > left) return false;
    } while (!left_.compare_exchange_weak(left, left - bytes,
                                          std::memory_order_relaxed));
    return true;
  }
  void Release(size_t bytes) {
    left_.fetch_add(bytes, std::memory_order_relaxed);
  }
  size_t bytes() const { return bytes_; }

 private:
  const size_t bytes_;
  std::atomic<size_t> left_{bytes_};
};

// One message. Trusts nothing: no memory is taken that `budget` does not give,
// and none beyond `max_bytes`. Not thread-safe.
class MessageAssembler {
 public:
  MessageAssembler(size_t max_bytes, std::shared_ptr<AssemblyBudget> budget);
  MessageAssembler(const MessageAssembler&) = delete;
  MessageAssembler& operator=(const MessageAssembler&) = delete;
  ~MessageAssembler();

  // Takes the next piece; true when the message is whole. After an error
  // nothing more may be added.
  //
  //   kInvalidArgument    the piece is malformed, or not of this message.
  //   kResourceExhausted  the message is too long, or no budget is left.
  absl::StatusOr<bool> Add(::grpc::ByteBuffer& piece);

  // What has come, and what was announced; 0 before the first piece.
  size_t received_bytes() const { return received_; }
  size_t total_bytes() const { return total_; }

  // The whole message, whose parts are storages of their own. Once.
  Payload Take();

 private:
  class Reader;

  absl::Status AddPart(uint64_t bytes);
  absl::Status Allocate();
  absl::Status CopyContent(Reader& reader, uint64_t size);
  void ReleaseBudget();

  const size_t max_bytes_;
  const std::shared_ptr<AssemblyBudget> budget_;
  bool begun_ = false;
  std::vector<size_t> part_bytes_;
  std::vector<tensor::StoragePtr> parts_;
  size_t total_ = 0;
  size_t reserved_ = 0;
  size_t received_ = 0;
  // Where the next byte goes.
  size_t part_ = 0;
  size_t offset_ = 0;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_MESSAGE_ASSEMBLER_H_

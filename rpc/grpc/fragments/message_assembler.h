// Assembly of requests received in fragments (proto/fragments.proto).

#ifndef HAWSER_RPC_GRPC_FRAGMENTS_MESSAGE_ASSEMBLER_H_
#define HAWSER_RPC_GRPC_FRAGMENTS_MESSAGE_ASSEMBLER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/mutex.h"
#include "grpcpp/support/byte_buffer.h"
#include "rpc/transport/payload.h"
#include "tensor/memory/storage.h"

namespace hawser::rpc {

// Memory budget for incomplete messages, in total and per peer. Thread-safe.
class AssemblyBudget {
 public:
  AssemblyBudget(size_t bytes, size_t bytes_per_peer)
      : bytes_(bytes), bytes_per_peer_(bytes_per_peer) {}

  // kResourceExhausted if `bytes` exceeds the remaining budget, in total or of
  // `peer`.
  absl::Status Reserve(const std::string& peer, size_t bytes);
  // Releases reserved bytes.
  void Release(const std::string& peer, size_t bytes);

 private:
  const size_t bytes_;
  const size_t bytes_per_peer_;

  async::Mutex mutex_;
  size_t used_ ABSL_GUARDED_BY(mutex_) = 0;
  // Values are positive.
  absl::flat_hash_map<std::string, size_t> used_by_ ABSL_GUARDED_BY(mutex_);
};

// Assembles one message from untrusted fragments. Allocates only memory
// reserved from `budget`, and at most `max_bytes`. Not thread-safe.
class MessageAssembler {
 public:
  // `peer` is charged for the memory.
  MessageAssembler(size_t max_bytes, std::shared_ptr<AssemblyBudget> budget,
                   std::string peer);
  MessageAssembler(const MessageAssembler&) = delete;
  MessageAssembler& operator=(const MessageAssembler&) = delete;
  ~MessageAssembler();

  // Adds the next fragment; returns true when the message is complete. After an
  // error no more fragments may be added.
  //
  //   kInternal           the fragment is malformed, or does not belong to this
  //                       message.
  //   kResourceExhausted  the message is too long, or the budget is exhausted,
  //                       in total or for the peer.
  absl::StatusOr<bool> Add(::grpc::ByteBuffer& fragment);

  // Bytes received and announced; 0 before the first fragment.
  size_t received_bytes() const { return received_; }
  size_t total_bytes() const { return total_; }

  // Returns the complete message, each part of which is a separate storage.
  // Call once.
  Payload Take();

 private:
  class Reader;

  absl::Status AddPart(uint64_t bytes);
  absl::Status Allocate();
  absl::Status TakeContent(Reader& reader, uint64_t size);
  void ReleaseBudget();

  const size_t max_bytes_;
  const std::shared_ptr<AssemblyBudget> budget_;
  const std::string peer_;
  bool begun_ = false;
  std::vector<size_t> part_bytes_;
  std::vector<tensor::StoragePtr> parts_;
  size_t total_ = 0;
  size_t reserved_ = 0;
  size_t received_ = 0;
  // Position of the next byte.
  size_t part_ = 0;
  size_t offset_ = 0;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_FRAGMENTS_MESSAGE_ASSEMBLER_H_

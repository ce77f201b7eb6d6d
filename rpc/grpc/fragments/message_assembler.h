// Long requests in fragments: the receiver's end of proto/fragments.proto.

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
#include "grpcpp/support/slice.h"
#include "rpc/grpc/fragments/fragment_copier.h"
#include "rpc/transport/payload.h"
#include "tensor/memory/storage.h"

namespace hawser::rpc {

// Memory for messages of which not all has come, and the share of it that one
// peer may have. Thread-safe.
class AssemblyBudget {
 public:
  AssemblyBudget(size_t bytes, size_t bytes_per_peer)
      : bytes_(bytes), bytes_per_peer_(bytes_per_peer) {}

  // kResourceExhausted: there is not so much left, or not for `peer`.
  absl::Status Reserve(const std::string& peer, size_t bytes);
  // What was reserved.
  void Release(const std::string& peer, size_t bytes);

 private:
  const size_t bytes_;
  const size_t bytes_per_peer_;

  async::Mutex mutex_;
  size_t used_ ABSL_GUARDED_BY(mutex_) = 0;
  // Above 0.
  absl::flat_hash_map<std::string, size_t> used_by_ ABSL_GUARDED_BY(mutex_);
};

// One message. Trusts nothing: no memory is taken that `budget` does not give,
// and none beyond `max_bytes`. Not thread-safe.
class MessageAssembler {
 public:
  // `peer`: whose share of the budget it takes. `copier` lives longer.
  MessageAssembler(size_t max_bytes, std::shared_ptr<AssemblyBudget> budget,
                   std::string peer, FragmentCopier& copier);
  MessageAssembler(const MessageAssembler&) = delete;
  MessageAssembler& operator=(const MessageAssembler&) = delete;
  ~MessageAssembler();

  // Takes the next fragment; true when the message is whole. After an error
  // nothing more may be added.
  //
  //   kInternal           the fragment is malformed, or not of this message.
  //   kResourceExhausted  the message is too long, or no budget is left, or
  //                       none for the peer.
  absl::StatusOr<bool> Add(::grpc::ByteBuffer& fragment);

  // What has come, and what was announced; 0 before the first fragment.
  size_t received_bytes() const { return received_; }
  size_t total_bytes() const { return total_; }

  // The whole message, whose parts are storages of their own. Once.
  Payload Take();

 private:
  class Reader;

  absl::Status AddPart(uint64_t bytes);
  absl::Status Allocate();
  absl::Status TakeContent(Reader& reader, uint64_t size);
  // To where the next bytes go.
  void Copy(std::vector<::grpc::Slice> slices, size_t size);
  void ReleaseBudget();

  const size_t max_bytes_;
  const std::shared_ptr<AssemblyBudget> budget_;
  const std::string peer_;
  FragmentCopier& copier_;
  // That other threads were given.
  std::vector<std::shared_ptr<FragmentCopy>> copies_;
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

#endif  // HAWSER_RPC_GRPC_FRAGMENTS_MESSAGE_ASSEMBLER_H_

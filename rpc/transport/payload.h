// Bytes of one message, as a list of chunks.

#ifndef HAWSER_RPC_TRANSPORT_PAYLOAD_H_
#define HAWSER_RPC_TRANSPORT_PAYLOAD_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensor/memory/storage.h"

namespace hawser::rpc {

// Bytes in the memory of another process on this machine, which keeps them
// unchanged as long as this object lives. Thread-safe.
class RemoteBytes {
 public:
  virtual ~RemoteBytes() = default;

  // Copies `size` bytes from `offset` on to `to`. kUnavailable if the other
  // process has freed them or has ended; the content of `to` is then
  // unspecified.
  virtual absl::Status Fetch(size_t offset, void* to, size_t size) const = 0;

  // Returns the same bytes where they are, in memory that both processes share.
  // The other process keeps them as long as the storage lives, but a faulty one
  // may change them at any time. Null if they are not in such memory, or not
  // aligned as the storage of tensors is.
  virtual tensor::StoragePtr InPlace(size_t offset, size_t size) const {
    (void)offset;
    (void)size;
    return nullptr;
  }
};

// A message that a transport sends or receives: the concatenation of its
// chunks. Each chunk is either memory kept alive by a shared owner (a string, a
// tensor's storage, a buffer of the transport), or remote bytes that the
// transport copies to their destination on demand. The thread that drops the
// last reference to an owner frees the memory.
//
// Movable and copyable; a copy shares the chunks.
class Payload {
 public:
  struct Chunk {
    std::shared_ptr<const void> owner;
    // Null if the bytes are remote.
    const char* data = nullptr;
    size_t size = 0;
    // Null if the bytes are local. Kept alive by the owner.
    const RemoteBytes* remote = nullptr;
    // If not null, the bytes are all of this storage, which has no other users,
    // so that a tensor can adopt it. Kept alive by the owner.
    tensor::Storage* storage = nullptr;
  };

  Payload() = default;
  explicit Payload(std::string bytes) { Append(std::move(bytes)); }

  // Appends bytes; empty input does not add a chunk.
  void Append(std::string bytes);
  // Appends `size` bytes at `data`, which must stay valid and unchanged while a
  // copy of `owner` lives.
  void Append(std::shared_ptr<const void> owner, const void* data, size_t size);
  void Append(std::shared_ptr<const RemoteBytes> bytes, size_t size);
  // Appends host memory that was allocated for this payload.
  void Append(tensor::StoragePtr storage);

  std::span<const Chunk> chunks() const {
    return {chunks_.data(), chunks_.size()};
  }
  size_t size() const { return size_; }

  // Copies `size` bytes of a local or remote chunk to `to`.
  absl::Status Copy(size_t chunk, size_t offset, void* to, size_t size) const;
  // Makes a remote chunk local. Errors as RemoteBytes::Fetch.
  absl::Status Fetch(size_t chunk);

  // Makes all chunks local, as needed before forwarding.
  absl::Status FetchAll();

  // Returns the bytes as one string; for tests and small messages.
  absl::StatusOr<std::string> Flatten() const;

 private:
  absl::InlinedVector<Chunk, 2> chunks_;
  size_t size_ = 0;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TRANSPORT_PAYLOAD_H_

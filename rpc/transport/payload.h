// The bytes of one message, in chunks that are never joined.

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

// Bytes that are not here yet: of another process on this machine, which keeps
// them unchanged as long as this lives. Thread-safe.
class RemoteBytes {
 public:
  virtual ~RemoteBytes() = default;

  // Copies `size` bytes, from `offset` on, to `to`. kUnavailable: the other
  // process took them back or has ended; what is in `to` then is no message.
  virtual absl::Status Fetch(size_t offset, void* to, size_t size) const = 0;
};

// What a transport sends and receives: the concatenation of its chunks. Each
// chunk is memory kept by a shared owner: a string, a tensor's storage, a
// buffer of the transport; or bytes that a transport fetches when they are
// wanted, straight to where they are wanted. Whoever drops the last reference
// to an owner frees the memory, on its own thread.
//
// Movable and copyable; a copy shares the chunks.
class Payload {
 public:
  struct Chunk {
    std::shared_ptr<const void> owner;
    // Null if the bytes are remote.
    const char* data = nullptr;
    size_t size = 0;
    // Null if the bytes are here. Kept by the owner.
    const RemoteBytes* remote = nullptr;
    // Not null if the bytes are all of this storage, which nobody else uses: a
    // tensor may be made of it. Kept by the owner.
    tensor::Storage* storage = nullptr;
  };

  Payload() = default;
  explicit Payload(std::string bytes) { Append(std::move(bytes)); }

  // Adds bytes at the end; an empty piece leaves no chunk.
  void Append(std::string bytes);
  // `data` must stay valid and unchanged while a copy of `owner` lives.
  void Append(std::shared_ptr<const void> owner, const void* data, size_t size);
  void Append(std::shared_ptr<const RemoteBytes> bytes, size_t size);
  // Host memory that was made for this payload.
  void Append(tensor::StoragePtr storage);

  std::span<const Chunk> chunks() const {
    return {chunks_.data(), chunks_.size()};
  }
  size_t size() const { return size_; }

  // Copies `size` bytes of a chunk, wherever it is, to `to`.
  absl::Status Copy(size_t chunk, size_t offset, void* to, size_t size) const;
  // Makes the bytes of a chunk local, if they are not. Errors as
  // RemoteBytes::Fetch.
  absl::Status Fetch(size_t chunk);

  // The same for all chunks: what is passed on must be here.
  absl::Status FetchAll();

  // The bytes joined into one string: for tests and small messages.
  absl::StatusOr<std::string> Flatten() const;

 private:
  absl::InlinedVector<Chunk, 2> chunks_;
  size_t size_ = 0;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TRANSPORT_PAYLOAD_H_

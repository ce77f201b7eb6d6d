// The bytes of one message, in pieces that are never joined.

#ifndef HAWSER_RPC_PAYLOAD_H_
#define HAWSER_RPC_PAYLOAD_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"

namespace hawser::rpc {

// What a transport sends and receives: the concatenation of its chunks. Each
// chunk is memory kept by a shared owner: a string, a tensor's storage, a
// buffer of the transport. Whoever drops the last reference to an owner frees
// the memory, on its own thread.
//
// Movable and copyable; a copy shares the chunks.
class Payload {
 public:
  struct Chunk {
    std::shared_ptr<const void> owner;
    const char* data;
    size_t size;
  };

  Payload() = default;
  explicit Payload(std::string bytes) { Append(std::move(bytes)); }

  // Adds bytes at the end; an empty piece leaves no chunk.
  void Append(std::string bytes);
  // `data` must stay valid and unchanged while a copy of `owner` lives.
  void Append(std::shared_ptr<const void> owner, const void* data, size_t size);

  std::span<const Chunk> chunks() const {
    return {chunks_.data(), chunks_.size()};
  }
  size_t size() const { return size_; }

  // The bytes joined into one string: for tests and small messages.
  std::string Flatten() const;

 private:
  absl::InlinedVector<Chunk, 2> chunks_;
  size_t size_ = 0;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_PAYLOAD_H_

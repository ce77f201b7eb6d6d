#include "rpc/payload.h"

namespace hawser::rpc {

void Payload::Append(std::string bytes) {
  if (bytes.empty()) return;
  auto owner = std::make_shared<const std::string>(std::move(bytes));
  const char* data = owner->data();
  const size_t size = owner->size();
  Append(std::move(owner), data, size);
}

void Payload::Append(std::shared_ptr<const void> owner, const void* data,
                     size_t size) {
  if (size == 0) return;
  chunks_.push_back({std::move(owner), static_cast<const char*>(data), size});
  size_ += size;
}

std::string Payload::Flatten() const {
  std::string bytes;
  bytes.reserve(size_);
  for (const Chunk& chunk : chunks_) bytes.append(chunk.data, chunk.size);
  return bytes;
}

}  // namespace hawser::rpc

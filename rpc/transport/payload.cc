#include "rpc/transport/payload.h"

#include <cstring>

#include "async/status_macros.h"

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
  chunks_.push_back({.owner = std::move(owner),
                     .data = static_cast<const char*>(data),
                     .size = size});
  size_ += size;
}

void Payload::Append(std::shared_ptr<const RemoteBytes> bytes, size_t size) {
  if (size == 0) return;
  const RemoteBytes* remote = bytes.get();
  chunks_.push_back(
      {.owner = std::move(bytes), .size = size, .remote = remote});
  size_ += size;
}

void Payload::Append(tensor::StoragePtr storage) {
  if (storage->bytes() == 0) return;
  auto owner = std::make_shared<const tensor::StoragePtr>(std::move(storage));
  tensor::Storage* const memory = owner->get();
  chunks_.push_back({.owner = std::move(owner),
                     .data = static_cast<const char*>(memory->data()),
                     .size = memory->bytes(),
                     .storage = memory});
  size_ += memory->bytes();
}

absl::Status Payload::Copy(size_t chunk, size_t offset, void* to,
                           size_t size) const {
  const Chunk& from = chunks_[chunk];
  if (from.remote != nullptr) return from.remote->Fetch(offset, to, size);
  std::memcpy(to, from.data + offset, size);
  return absl::OkStatus();
}

absl::Status Payload::Fetch(size_t chunk) {
  Chunk& target = chunks_[chunk];
  if (target.remote == nullptr) return absl::OkStatus();
  std::shared_ptr<char[]> bytes(new char[target.size]);
  RETURN_IF_ERROR(target.remote->Fetch(0, bytes.get(), target.size));
  const char* data = bytes.get();
  target = {.owner = std::move(bytes), .data = data, .size = target.size};
  return absl::OkStatus();
}

absl::Status Payload::FetchAll() {
  for (size_t i = 0; i < chunks_.size(); ++i) RETURN_IF_ERROR(Fetch(i));
  return absl::OkStatus();
}

absl::StatusOr<std::string> Payload::Flatten() const {
  std::string bytes(size_, '\0');
  size_t end = 0;
  for (size_t i = 0; i < chunks_.size(); ++i) {
    RETURN_IF_ERROR(Copy(i, 0, bytes.data() + end, chunks_[i].size));
    end += chunks_[i].size;
  }
  return bytes;
}

}  // namespace hawser::rpc

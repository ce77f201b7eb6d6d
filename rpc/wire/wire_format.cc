#include "rpc/wire/wire_format.h"

namespace hawser::rpc::internal {

bool WireReader::ReadVarint(uint64_t& value) {
  uint64_t result = 0;
  for (size_t i = 0; i < kMaxVarintBytes && i < rest_.size(); ++i) {
    const uint64_t byte = static_cast<uint8_t>(rest_[i]);
    // The tenth byte holds only one bit.
    if (i == kMaxVarintBytes - 1 && byte > 1) return false;
    result |= (byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      rest_.remove_prefix(i + 1);
      value = result;
      return true;
    }
  }
  return false;
}

bool WireReader::ReadFixed64(uint64_t& value) {
  if (rest_.size() < 8) return false;
  std::memcpy(&value, rest_.data(), 8);
  rest_.remove_prefix(8);
  return true;
}

bool WireReader::ReadField(WireField& field) {
  uint64_t tag = 0;
  if (!ReadVarint(tag) || tag > UINT32_MAX || tag >> 3 == 0) return false;
  field.number = static_cast<uint32_t>(tag >> 3);
  field.type = static_cast<WireType>(tag & 7);
  switch (field.type) {
    case WireType::kVarint:
      return ReadVarint(field.value);
    case WireType::kFixed64:
      return ReadFixed64(field.value);
    case WireType::kBytes: {
      uint64_t size = 0;
      if (!ReadVarint(size) || size > rest_.size()) return false;
      field.bytes = rest_.substr(0, size);
      rest_.remove_prefix(size);
      return true;
    }
    case WireType::kFixed32: {
      if (rest_.size() < 4) return false;
      uint32_t value = 0;
      std::memcpy(&value, rest_.data(), 4);
      rest_.remove_prefix(4);
      field.value = value;
      return true;
    }
  }
  return false;
}

}  // namespace hawser::rpc::internal

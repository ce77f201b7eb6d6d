// Protobuf's wire format, for code that writes and reads messages without
// generated classes.

#ifndef HAWSER_RPC_WIRE_WIRE_FORMAT_H_
#define HAWSER_RPC_WIRE_WIRE_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace hawser::rpc::internal {

enum class WireType : uint8_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,
  kFixed32 = 5,
};

constexpr uint32_t MakeTag(uint32_t field, WireType type) {
  return field << 3 | static_cast<uint32_t>(type);
}

constexpr uint64_t ZigZag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^
         static_cast<uint64_t>(value >> 63);
}
constexpr int64_t UnZigZag(uint64_t value) {
  return static_cast<int64_t>((value >> 1) ^ (~(value & 1) + 1));
}

inline constexpr size_t kMaxVarintBytes = 10;

// Writes to `out`, which must have space for kMaxVarintBytes; returns the
// number of bytes written.
inline size_t PutVarint(uint64_t value, char* out) {
  size_t size = 0;
  while (value >= 0x80) {
    out[size++] = static_cast<char>(value | 0x80);
    value >>= 7;
  }
  out[size++] = static_cast<char>(value);
  return size;
}

inline void AppendVarint(uint64_t value, std::string& out) {
  char bytes[kMaxVarintBytes];
  out.append(bytes, PutVarint(value, bytes));
}
inline void AppendVarintField(uint32_t field, uint64_t value,
                              std::string& out) {
  AppendVarint(MakeTag(field, WireType::kVarint), out);
  AppendVarint(value, out);
}
inline void AppendFixed64Field(uint32_t field, uint64_t value,
                               std::string& out) {
  AppendVarint(MakeTag(field, WireType::kFixed64), out);
  char bytes[8];
  std::memcpy(bytes, &value, 8);  // Little-endian, as all supported machines.
  out.append(bytes, 8);
}
inline void AppendBytesField(uint32_t field, std::string_view value,
                             std::string& out) {
  AppendVarint(MakeTag(field, WireType::kBytes), out);
  AppendVarint(value.size(), out);
  out.append(value);
}

// One field of a message.
struct WireField {
  uint32_t number = 0;
  WireType type{};
  // For kVarint, kFixed64 and kFixed32.
  uint64_t value = 0;
  // For kBytes; refers to the input.
  std::string_view bytes;
};

// Reads the fields of one message. Groups, which are not used here, and invalid
// field numbers are errors.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  bool AtEnd() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

  // Returns false if the bytes are malformed; the reader must not be used
  // afterwards.
  bool ReadField(WireField& field);
  bool ReadVarint(uint64_t& value);
  bool ReadFixed64(uint64_t& value);

 private:
  std::string_view rest_;
};

}  // namespace hawser::rpc::internal

#endif  // HAWSER_RPC_WIRE_WIRE_FORMAT_H_

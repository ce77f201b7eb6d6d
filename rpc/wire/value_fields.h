// Field numbers of `Value` and its parts in proto/rpc.proto. A test compares
// them with the generated classes.

#ifndef HAWSER_RPC_WIRE_VALUE_FIELDS_H_
#define HAWSER_RPC_WIRE_VALUE_FIELDS_H_

#include <cstdint>

namespace hawser::rpc::internal {

inline constexpr uint32_t kNullValue = 1;
inline constexpr uint32_t kBoolValue = 2;
inline constexpr uint32_t kIntValue = 3;
inline constexpr uint32_t kUintValue = 4;
inline constexpr uint32_t kDoubleValue = 5;
inline constexpr uint32_t kStringValue = 6;
inline constexpr uint32_t kBytesValue = 7;
inline constexpr uint32_t kTensorIndex = 8;
inline constexpr uint32_t kListValue = 9;
inline constexpr uint32_t kMapValue = 10;
inline constexpr uint32_t kMessageValue = 11;
inline constexpr uint32_t kIntList = 12;
inline constexpr uint32_t kUintList = 13;
inline constexpr uint32_t kDoubleList = 14;

// ValueList.
inline constexpr uint32_t kListValues = 1;
// ValueMap.
inline constexpr uint32_t kMapEntries = 1;
// ValueEntry.
inline constexpr uint32_t kEntryKey = 1;
inline constexpr uint32_t kEntryValue = 2;
// MessageValue.
inline constexpr uint32_t kMessageType = 1;
inline constexpr uint32_t kMessageData = 2;
// IntList, UintList, DoubleList.
inline constexpr uint32_t kPackedValues = 1;

}  // namespace hawser::rpc::internal

#endif  // HAWSER_RPC_WIRE_VALUE_FIELDS_H_

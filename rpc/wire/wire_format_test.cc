#include "rpc/wire/wire_format.h"

#include <cstdint>
#include <limits>
#include <string>

#include "gtest/gtest.h"

namespace hawser::rpc::internal {
namespace {

TEST(WireFormatTest, VarintsOfEveryLengthRoundTrip) {
  for (int bit = 0; bit < 64; ++bit) {
    for (uint64_t value : {uint64_t{1} << bit, (uint64_t{1} << bit) - 1}) {
      std::string bytes;
      AppendVarint(value, bytes);
      WireReader reader(bytes);
      uint64_t read = 0;
      ASSERT_TRUE(reader.ReadVarint(read));
      EXPECT_EQ(read, value);
      EXPECT_TRUE(reader.AtEnd());
    }
  }
}

TEST(WireFormatTest, ZigZagKeepsSign) {
  for (int64_t value : {int64_t{0}, int64_t{-1}, int64_t{1},
                        std::numeric_limits<int64_t>::min(),
                        std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(UnZigZag(ZigZag(value)), value);
  }
  EXPECT_EQ(ZigZag(-1), 1u);
}

TEST(WireFormatTest, FieldsRoundTrip) {
  std::string bytes;
  AppendVarintField(1, 300, bytes);
  AppendFixed64Field(2, 0x0102030405060708, bytes);
  AppendBytesField(3, "abc", bytes);
  WireReader reader(bytes);
  WireField field;
  ASSERT_TRUE(reader.ReadField(field));
  EXPECT_EQ(field.number, 1u);
  EXPECT_EQ(field.value, 300u);
  ASSERT_TRUE(reader.ReadField(field));
  EXPECT_EQ(field.value, 0x0102030405060708u);
  ASSERT_TRUE(reader.ReadField(field));
  EXPECT_EQ(field.bytes, "abc");
  EXPECT_TRUE(reader.AtEnd());
}

TEST(WireFormatTest, MalformedFieldsAreRefused) {
  for (const std::string& bytes : {
           std::string("\x08"),              // Value missing.
           std::string("\x12\x05zzz"),       // Shorter than it says.
           std::string("\x00\x01", 2),       // Field number 0.
           std::string("\x0b"),              // A group.
           std::string("\x0e"),              // Unknown wire type.
           std::string("\x09\x01\x02"),      // Fixed number cut off.
           std::string("\x0d\x01\x02"),      // The same, of 32 bits.
           std::string(11, '\xff'),          // Varint without end.
           std::string(9, '\xff') + "\x02",  // Varint above 64 bits.
           std::string("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01zz"),
       }) {
    WireReader reader(bytes);
    WireField field;
    EXPECT_FALSE(reader.ReadField(field));
  }
}

}  // namespace
}  // namespace hawser::rpc::internal

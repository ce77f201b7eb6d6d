#include "tensor/io/safetensors_header.h"

#include <random>
#include <string>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::tensor::internal {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// Formats an entry of a header.
std::string Entry(const std::string& name, const std::string& dtype,
                  const std::string& shape, const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

TEST(SafetensorsHeaderTest, ReadsEntriesInDataOrder) {
  const auto header = ParseSafetensorsHeader(
      "{" + Entry("b", "I64", "[2]", "[24,40]") +
          ",\"__metadata__\":{\"format\":\"pt\"}," +
          Entry("empty", "U8", "[3,0]", "[24,24]") + ", " +
          Entry("a", "F32", "[2, 3]", "[0,24]") + "}   ",
      40);
  ASSERT_THAT(header, IsOk());
  ASSERT_EQ(header->entries.size(), 3u);
  EXPECT_EQ(header->entries[0].name, "a");
  EXPECT_EQ(header->entries[0].dtype, DType::kF32);
  EXPECT_EQ(header->entries[0].shape, (Shape{2, 3}));
  EXPECT_EQ(header->entries[1].name, "empty");
  EXPECT_EQ(header->entries[1].shape, (Shape{3, 0}));
  EXPECT_EQ(header->entries[2].name, "b");
  EXPECT_EQ(header->entries[2].begin, 24u);
  EXPECT_EQ(header->entries[2].end, 40u);
  EXPECT_THAT(header->metadata, ElementsAre(Pair("format", "pt")));
}

TEST(SafetensorsHeaderTest, EmptyFilesAndScalars) {
  EXPECT_THAT(ParseSafetensorsHeader("{}", 0)->entries, IsEmpty());
  EXPECT_THAT(ParseSafetensorsHeader("{\"__metadata__\":{}}", 0)->metadata,
              IsEmpty());
  EXPECT_EQ(
      ParseSafetensorsHeader("{" + Entry("s", "F64", "[]", "[0,8]") + "}", 8)
          ->entries[0]
          .shape,
      Shape{});
}

TEST(SafetensorsHeaderTest, EveryDTypeReadsBack) {
  SafetensorsHeader header;
  uint64_t end = 0;
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType dtype = static_cast<DType>(i);
    const uint64_t begin = end;
    end += static_cast<uint64_t>(6 * ItemBytes(dtype));
    header.entries.push_back(
        {std::string(DTypeName(dtype)), dtype, {2, 3}, begin, end});
  }
  header.metadata = {{"quote\"", "back\\slash\n\x01"},
                     {"\xc3\xa9",
                      "\xe2\x82"
                      "\xac"}};
  const auto json = FormatSafetensorsHeader(header);
  ASSERT_THAT(json, IsOk());
  EXPECT_EQ((json->size() + 8) % 64, 0u);
  const auto back = ParseSafetensorsHeader(*json, end);
  ASSERT_THAT(back, IsOk());
  EXPECT_EQ(back->metadata, header.metadata);
  ASSERT_EQ(back->entries.size(), header.entries.size());
  for (size_t i = 0; i < header.entries.size(); ++i) {
    EXPECT_EQ(back->entries[i].name, header.entries[i].name);
    EXPECT_EQ(back->entries[i].dtype, header.entries[i].dtype);
    EXPECT_EQ(back->entries[i].shape, header.entries[i].shape);
    EXPECT_EQ(back->entries[i].begin, header.entries[i].begin);
    EXPECT_EQ(back->entries[i].end, header.entries[i].end);
  }
}

TEST(SafetensorsHeaderTest, NamesOutsideUtf8AreNotWritten) {
  for (const char* name : {"\xff", "\xc3", "\xed\xa0\x80", "a\x80"}) {
    SafetensorsHeader header;
    header.entries.push_back({name, DType::kU8, {0}, 0, 0});
    EXPECT_THAT(FormatSafetensorsHeader(header),
                StatusIs(kInvalid, HasSubstr("UTF-8")));
  }
}

TEST(SafetensorsHeaderTest, MalformedHeadersAreRejected) {
  const auto expect_refused = [](const std::string& json, uint64_t data_bytes,
                                 const char* why) {
    EXPECT_THAT(ParseSafetensorsHeader(json, data_bytes),
                StatusIs(kInvalid, HasSubstr(why)))
        << json;
  };
  const auto one = [](const std::string& dtype, const std::string& shape,
                      const std::string& offsets) {
    return "{" + Entry("t", dtype, shape, offsets) + "}";
  };
  expect_refused("", 0, "begin with {");
  expect_refused(" {}", 0, "begin with {");
  expect_refused("[]", 0, "begin with {");
  expect_refused("{", 0, "not JSON at byte");
  expect_refused("{}{", 0, "not JSON");
  expect_refused(std::string("{}\0", 3), 0, "NUL byte");
  expect_refused("{\"\xff\":{}}", 0, "not JSON");
  expect_refused("{}", 1,
                 "the tensors take 0 bytes of data, but the file has 1");
  expect_refused("{\"t\":1}", 0, "a number as the value of \"t\"");
  expect_refused("{\"t\":null}", 0, "null");
  expect_refused("{\"t\":\"x\"}", 0, "a string");
  expect_refused("{\"t\":[]}", 0, "an array");
  expect_refused("{\"t\":true}", 0, "true");
  expect_refused("{\"t\":{}}", 0, "lacks dtype, shape or data_offsets");
  expect_refused("{\"t\":{\"x\":1}}", 0, "key \"x\" is unknown");
  expect_refused("{\"t\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 0,
                 "\"dtype\" is duplicate");
  expect_refused("{\"t\":{\"dtype\":{}}}", 0,
                 "an object in an unexpected place");
  expect_refused("{\"t\":{\"dtype\":3}}", 0, "a number in an unexpected place");
  expect_refused("{\"t\":{\"shape\":\"U8\"}}", 0,
                 "a string in an unexpected place");
  expect_refused("{\"t\":{\"shape\":[[1]]}}", 0,
                 "an array in an unexpected place");
  expect_refused("{\"t\":{\"shape\":[{}]}}", 0,
                 "an object in an unexpected place");
  expect_refused("{" + Entry("t", "U8", "[0]", "[0,0]") + "," +
                     Entry("t", "U8", "[0]", "[0,0]") + "}",
                 0, "the name \"t\" is duplicate");
  expect_refused("{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0,
                 "metadata key \"a\" is duplicate");
  expect_refused("{\"__metadata__\":{\"a\":1}}", 0, "must be a string");
  expect_refused("{\"__metadata__\":{\"a\":{}}}", 0, "must be a string");
  expect_refused("{\"__metadata__\":[]}", 0, "an array");
  expect_refused(one("I16", "[1]", "[0,2]"), 2, "dtype \"I16\"");
  expect_refused(one("f32", "[1]", "[0,4]"), 4, "dtype \"f32\"");
  expect_refused(one("F32", "[-1]", "[0,4]"), 4, "negative number -1");
  expect_refused(one("F32", "[1.0]", "[0,4]"), 4, "not a 64-bit integer");
  expect_refused(one("F32", "[1e999]", "[0,4]"), 4, "not JSON");
  expect_refused(one("F32", "[9223372036854775808]", "[0,4]"), 4, "int64");
  expect_refused(one("F32", "[99999999999999999999]", "[0,4]"), 4,
                 "not a 64-bit integer");
  expect_refused(one("U8", "[4294967296,4294967296]", "[0,0]"), 0, "int64");
  expect_refused(one("F64", "[2305843009213693952]", "[0,0]"), 0, "int64");
  expect_refused(one("U8", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,1]"), 1,
                 "more than 16");
  expect_refused(one("F32", "[1]", "[0]"), 4, "two numbers");
  expect_refused(one("F32", "[1]", "[]"), 4, "two numbers");
  expect_refused(one("F32", "[1]", "[0,4,8]"), 4, "two numbers");
  expect_refused(one("F32", "[1]", "[4,0]"), 4, "data_offsets are [4, 0]");
  expect_refused(one("F32", "[1]", "[0,8]"), 8, "takes 4 bytes");
  expect_refused(one("F32", "[1]", "[4,8]"), 8, "after a gap");
  expect_refused(one("F32", "[1]", "[18446744073709551612,0]"), 4,
                 "data_offsets");
  expect_refused("{" + Entry("a", "U8", "[4]", "[0,4]") + "," +
                     Entry("b", "U8", "[4]", "[2,6]") + "}",
                 6, "within the tensor before it");
  expect_refused("{" + Entry("a", "U8", "[4]", "[0,4]") + "," +
                     Entry("b", "U8", "[0]", "[2,2]") + "}",
                 4, "within the tensor before it");
  expect_refused(one("U8", "[4]", "[0,4]"), 3, "but the file has 3");
  expect_refused(one("U8", "[4]", "[0,4]"), 5, "but the file has 5");
}

TEST(SafetensorsHeaderTest, DeepNestingUsesLittleMemory) {
  std::string json = "{\"a\":";
  for (int i = 0; i < 1000000; ++i) json += "[";
  EXPECT_THAT(ParseSafetensorsHeader(json, 0), StatusIs(kInvalid));
  json = "{";
  for (int i = 0; i < 1000000; ++i) json += "\"a\":{";
  EXPECT_THAT(ParseSafetensorsHeader(json, 0), StatusIs(kInvalid));
}

TEST(SafetensorsHeaderTest, LongNamesAreCutInMessages) {
  const std::string name(100000, 'n');
  const auto header = ParseSafetensorsHeader("{\"" + name + "\":1}", 0);
  EXPECT_THAT(header, StatusIs(kInvalid, HasSubstr("nnn...\"")));
  EXPECT_LT(header.status().message().size(), 300u);
}

TEST(SafetensorsHeaderTest, MutatedHeadersNeverCrash) {
  std::mt19937_64 random(20240302);
  const std::string seed = "{\"__metadata__\":{\"k\":\"v\"}," +
                           Entry("a", "F32", "[2,3]", "[0,24]") + "," +
                           Entry("b", "BOOL", "[5]", "[24,29]") + "," +
                           Entry("c", "U8", "[0]", "[29,29]") + "}";
  const std::string alphabet = "{}[]\",:\\ 0123456789-.eE+FUIB_atn\x80\xff\n";
  int valid = 0;
  for (int i = 0; i < 10000; ++i) {
    std::string json = seed;
    for (uint64_t n = random() % 3 + 1; n > 0; --n) {
      const size_t at = random() % (json.size() + 1);
      switch (random() % 4) {
        case 0:
          json.insert(at, 1, alphabet[random() % alphabet.size()]);
          break;
        case 1:
          json.erase(at, random() % 3);
          break;
        case 2:
          json.insert(at, seed.substr(random() % seed.size(), random() % 40));
          break;
        default:
          json.replace(at, 1, 1, alphabet[random() % alphabet.size()]);
      }
    }
    const auto header = ParseSafetensorsHeader(json, 29);
    if (!header.ok()) {
      EXPECT_EQ(header.status().code(), kInvalid);
      EXPECT_EQ(header.status().message().find('\n'), absl::string_view::npos);
      continue;
    }
    ++valid;
    uint64_t end = 0;
    for (const SafetensorsEntry& entry : header->entries) {
      EXPECT_EQ(entry.begin, end);
      EXPECT_EQ(entry.end - entry.begin,
                static_cast<uint64_t>(entry.shape.num_elements() *
                                      ItemBytes(entry.dtype)));
      end = entry.end;
    }
    EXPECT_EQ(end, 29u);
  }
  EXPECT_GT(valid, 50);
}

}  // namespace
}  // namespace hawser::tensor::internal

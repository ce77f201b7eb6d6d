#include "data/idx.h"

#include <zlib.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::data {
namespace {

using async::IsOk;
using async::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string PathOf(const std::string& name) {
  return ::testing::TempDir() + "/" + name;
}

std::string WritePlain(const std::string& name, const std::string& bytes) {
  std::string path = PathOf(name);
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

std::string WriteGzip(const std::string& name, const std::string& bytes) {
  std::string path = PathOf(name);
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
  return path;
}

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

const std::string kTwoByThree{
    "\0\0\x08\x02\0\0\0\x02\0\0\0\x03"
    "\x01\x02\x03\x04\x05\xff",
    18};

TEST(IdxTest, PlainAndGzipFilesGiveTheSameTensor) {
  for (const std::string& path : {WritePlain("plain.idx", kTwoByThree),
                                  WriteGzip("z.idx", kTwoByThree)}) {
    auto read = ReadIdx(path);
    ASSERT_THAT(read, IsOk());
    EXPECT_EQ(read->shape(), tensor::Shape({2, 3}));
    EXPECT_EQ(read->dtype(), tensor::DType::kU8);
    EXPECT_THAT(read->ToVector<uint8_t>(), ElementsAre(1, 2, 3, 4, 5, 255));
  }
}

TEST(IdxTest, BigEndianIntegersArriveInHostOrder) {
  const std::string bytes{
      "\0\0\x0c\x01\0\0\0\x02\x00\x00\x01\x02\xff\xff\xff\xfe", 16};
  auto read = ReadIdx(WritePlain("int.idx", bytes));
  ASSERT_THAT(read, IsOk());
  EXPECT_THAT(read->ToVector<int32_t>(), ElementsAre(258, -2));
}

TEST(IdxTest, EmptyDimensionGivesAnEmptyTensor) {
  const std::string bytes{"\0\0\x08\x02\0\0\0\0\0\0\0\x03", 12};
  auto read = ReadIdx(WritePlain("empty.idx", bytes));
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->num_elements(), 0);
}

TEST(IdxTest, MissingFileIsNotFoundByName) {
  EXPECT_THAT(ReadIdx("/no/such/file"),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("cannot open /no/such/file")));
}

TEST(IdxTest, EveryPrefixOfAFileIsRefusedAsTruncated) {
  for (size_t n = 0; n < kTwoByThree.size(); ++n) {
    const std::string path = WritePlain("prefix.idx", kTwoByThree.substr(0, n));
    EXPECT_THAT(ReadIdx(path),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(path), HasSubstr("truncated"))))
        << n << " bytes";
  }
}

TEST(IdxTest, EveryPrefixOfAGzipFileIsRefused) {
  const std::string whole = ReadAll(WriteGzip("whole.gz", kTwoByThree));
  for (size_t n = 3; n < whole.size(); ++n) {
    EXPECT_THAT(ReadIdx(WritePlain("prefix.gz", whole.substr(0, n))),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << n << " bytes";
  }
}

TEST(IdxTest, DamagedGzipIsRefused) {
  std::string bytes = ReadAll(WriteGzip("damaged.gz", kTwoByThree));
  bytes[bytes.size() - 6] ^= 0x55;  // The stored checksum.
  EXPECT_THAT(ReadIdx(WritePlain("damaged.gz", bytes)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("damaged gzip data")));
}

TEST(IdxTest, TrailingBytesAreRefused) {
  EXPECT_THAT(ReadIdx(WritePlain("long.idx", kTwoByThree + "x")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("more bytes follow the 6 payload bytes")));
}

TEST(IdxTest, ForeignContentIsRefused) {
  EXPECT_THAT(ReadIdx(WritePlain("text.idx", "hello world")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("not an IDX file")));
  EXPECT_THAT(
      ReadIdx(WritePlain("i16.idx", std::string{"\0\0\x0b\x01\0\0\0\0", 8})),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("element type 0x0b")));
  EXPECT_THAT(
      ReadIdx(WritePlain("rank0.idx", std::string{"\0\0\x08\x00", 4})),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("rank 0")));
}

TEST(IdxTest, HugeDeclaredShapeIsRefusedWithoutAllocatingIt) {
  const std::string four_giga_dims{
      "\0\0\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 16};
  EXPECT_THAT(
      ReadIdx(WritePlain("huge.idx", four_giga_dims)),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2^33 elements")));
  // 2^33 elements, which are allowed, times 2^31: 0 in 64 bits.
  const std::string wraps_around{"\0\0\x08\x03\0\0\x20\0\0\x10\0\0\x80\0\0\0",
                                 16};
  EXPECT_THAT(
      ReadIdx(WritePlain("wraps.idx", wraps_around)),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2^33 elements")));
  const std::string one_giga{"\0\0\x08\x01\x40\0\0\0", 8};
  EXPECT_THAT(ReadIdx(WritePlain("giga.idx", one_giga)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("declares 1073741824 payload bytes")));
}

}  // namespace
}  // namespace hawser::data

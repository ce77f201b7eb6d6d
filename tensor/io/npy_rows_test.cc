#include "tensor/io/npy_rows.h"

#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/io/npy.h"

namespace hawser::tensor {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

std::string PathOf(const std::string& name) {
  return testing::TempDir() + "/npy_rows_test_" + name + ".npy";
}

std::string Write(const std::string& name, const Tensor& tensor) {
  std::string path = PathOf(name);
  EXPECT_THAT(WriteNpy(path, tensor), IsOk());
  return path;
}

// Writes a version 1.0 file with this dictionary and data.
std::string WriteRaw(const std::string& name, const std::string& dictionary,
                     const std::string& data) {
  std::string bytes("\x93NUMPY\1\0", 8);
  bytes += static_cast<char>(dictionary.size() & 0xff);
  bytes += static_cast<char>(dictionary.size() >> 8);
  std::string path = PathOf(name);
  std::ofstream(path, std::ios::binary) << bytes << dictionary << data;
  return path;
}

absl::StatusOr<Tensor> Read(const NpyRows& file,
                            const std::vector<int64_t>& rows) {
  return file.Read(rows);
}

TEST(NpyRowsTest, RowsAreInTheOrderAskedFor) {
  const auto file =
      NpyRows::Open(Write("order", *Tensor::Arange(24).Reshape({6, 2, 2})));
  ASSERT_THAT(file, IsOk());
  EXPECT_EQ(file->shape(), (Shape{6, 2, 2}));
  EXPECT_EQ(file->num_rows(), 6);
  EXPECT_EQ(file->dtype(), DType::kF32);
  // Single rows, a repetition, and runs up to the end and from the begin.
  const auto rows = Read(*file, {3, 3, 4, 5, 0, 1, 0});
  ASSERT_THAT(rows, IsOk());
  EXPECT_EQ(rows->shape(), (Shape{7, 2, 2}));
  EXPECT_THAT(rows->ToVector<float>(),
              ElementsAre(12, 13, 14, 15, 12, 13, 14, 15, 16, 17, 18, 19, 20,
                          21, 22, 23, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3));
}

TEST(NpyRowsTest, RowsOfEveryDTypeEqualThoseOfTheWholeFile) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType dtype = static_cast<DType>(i);
    if (dtype == DType::kBF16) continue;
    const std::string path =
        Write("dtype", *Tensor::Arange(30, {.dtype = dtype}).Reshape({10, 3}));
    const auto file = NpyRows::Open(path);
    ASSERT_THAT(file, IsOk());
    const auto whole = ReadNpy(path);
    const auto rows = Read(*file, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
    ASSERT_THAT(rows, IsOk());
    EXPECT_EQ(rows->dtype(), dtype);
    VisitDType(dtype, [&]<class T>() {
      EXPECT_EQ(rows->ToVector<T>(), whole->ToVector<T>());
    });
  }
}

TEST(NpyRowsTest, BigEndianAndBoolElementsAreConverted) {
  const auto numbers = NpyRows::Open(WriteRaw(
      "big", "{'descr': '>i4', 'fortran_order': False, 'shape': (2,), }\n",
      std::string("\0\0\1\2\xff\xff\xff\xfe", 8)));
  ASSERT_THAT(numbers, IsOk());
  EXPECT_THAT(Read(*numbers, {1, 0})->ToVector<int32_t>(),
              ElementsAre(-2, 258));
  const auto bools = NpyRows::Open(WriteRaw(
      "bool", "{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }\n",
      std::string("\0\7", 2)));
  ASSERT_THAT(bools, IsOk());
  const auto row = Read(*bools, {1});
  EXPECT_EQ(static_cast<const uint8_t*>(row->raw_data())[0], 1);
}

TEST(NpyRowsTest, AVectorInColumnMajorOrderIsAlsoInRowMajorOrder) {
  const auto file = NpyRows::Open(WriteRaw(
      "vector", "{'descr': '|u1', 'fortran_order': True, 'shape': (3,), }\n",
      "abc"));
  ASSERT_THAT(file, IsOk());
  EXPECT_THAT(Read(*file, {2})->ToVector<uint8_t>(), ElementsAre('c'));
}

TEST(NpyRowsTest, ArraysWithoutRowsInOnePieceAreRefused) {
  EXPECT_THAT(
      NpyRows::Open(WriteRaw(
          "columns",
          "{'descr': '|u1', 'fortran_order': True, 'shape': (1, 3), }\n",
          "abc")),
      StatusIs(kInvalid, AllOf(HasSubstr(PathOf("columns")),
                               HasSubstr("column-major order"))));
  EXPECT_THAT(NpyRows::Open(Write("scalar", Tensor::Ones({}))),
              StatusIs(kInvalid, AllOf(HasSubstr(PathOf("scalar")),
                                       HasSubstr("a scalar has no rows"))));
}

TEST(NpyRowsTest, BadFilesAreRefusedByName) {
  EXPECT_THAT(
      NpyRows::Open(WriteRaw(
          "short", "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
          "1234567")),
      StatusIs(kInvalid, AllOf(HasSubstr(PathOf("short")),
                               HasSubstr("7 bytes of data"))));
  EXPECT_THAT(NpyRows::Open(PathOf("none")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(PathOf("none"))));
}

TEST(NpyRowsTest, RowsOutsideAreRefused) {
  const auto file = NpyRows::Open(Write("outside", Tensor::Ones({2, 3})));
  ASSERT_THAT(file, IsOk());
  for (const int64_t row : {-1, 2}) {
    EXPECT_THAT(
        Read(*file, {0, row}),
        StatusIs(absl::StatusCode::kOutOfRange,
                 AllOf(HasSubstr(PathOf("outside")), HasSubstr("it has 2"))));
  }
  EXPECT_EQ(Read(*file, {})->shape(), (Shape{0, 3}));
}

TEST(NpyRowsTest, ATruncatedFileIsAnErrorOfTheRowsItLost) {
  const std::string path = Write("truncated", Tensor::Ones({100, 4}));
  const auto file = NpyRows::Open(path);
  ASSERT_THAT(file, IsOk());
  ASSERT_EQ(truncate(path.c_str(), 128 + 16 * 50), 0);
  EXPECT_THAT(Read(*file, {49}), IsOk());
  EXPECT_THAT(Read(*file, {50}),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr(path), HasSubstr("ends at byte 928"))));
}

// A sparse file of 2 TiB, more than a machine for tests has.
TEST(NpyRowsTest, AFileMayBeLargerThanTheMemory) {
  const std::string dictionary =
      "{'descr': '|u1', 'fortran_order': False, 'shape': (2147483648, 1024)}";
  const std::string path = WriteRaw("large", dictionary, "");
  const auto header_bytes = static_cast<int64_t>(10 + dictionary.size());
  const int64_t data_bytes = int64_t{1} << 41;
  if (truncate(path.c_str(), header_bytes + data_bytes) != 0) {
    unlink(path.c_str());
    GTEST_SKIP() << "this file system does not hold a file of 2 TiB";
  }
  {
    std::fstream out(path, std::ios::binary | std::ios::in | std::ios::out);
    out.seekp(header_bytes + data_bytes - 1);
    out.put('z');
  }
  const auto file = NpyRows::Open(path);
  unlink(path.c_str());
  ASSERT_THAT(file, IsOk());
  const auto rows = Read(*file, {file->num_rows() - 1, 0});
  ASSERT_THAT(rows, IsOk());
  EXPECT_EQ(rows->ToVector<uint8_t>()[1023], 'z');
  EXPECT_EQ(rows->ToVector<uint8_t>()[2047], 0);
}

}  // namespace
}  // namespace hawser::tensor

#include "tensor/io/npy.h"

#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/io/npy_header.h"

namespace hawser::tensor {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

std::string PathOf(const std::string& name) {
  return testing::TempDir() + "/npy_test_" + name + ".npy";
}

std::string Contents(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

// Writes `bytes` to a file and reads it.
absl::StatusOr<Tensor> ReadBytes(const std::string& bytes) {
  const std::string path = PathOf("bytes");
  unlink(path.c_str());  // Overwriting it would wait for the disk.
  std::ofstream(path, std::ios::binary) << bytes;
  return ReadNpy(path);
}

// A version 1.0 file with this dictionary and data.
std::string File(const std::string& dictionary, const std::string& data) {
  std::string bytes("\x93NUMPY\1\0", 8);
  bytes += static_cast<char>(dictionary.size() & 0xff);
  bytes += static_cast<char>(dictionary.size() >> 8);
  return bytes + dictionary + data;
}

TEST(NpyTest, EveryDTypeAndLayoutReadsBack) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType dtype = static_cast<DType>(i);
    if (dtype == DType::kBF16) continue;
    const Tensor base =
        *Tensor::Arange(24, {.dtype = dtype}).Reshape({2, 3, 4});
    for (const Tensor& tensor :
         {base, *base.Permute({2, 0, 1}), *base.Slice(2, 0, 4, 3),
          *base.Slice(1, 0, 0), Tensor::Ones({}, {.dtype = dtype}),
          Tensor::Ones({5}, {.dtype = dtype})}) {
      const std::string path = PathOf("round");
      ASSERT_THAT(WriteNpy(path, tensor), IsOk());
      const auto back = ReadNpy(path);
      ASSERT_THAT(back, IsOk());
      EXPECT_EQ(back->dtype(), dtype);
      EXPECT_EQ(back->shape(), tensor.shape());
      VisitDType(dtype, [&]<class T>() {
        EXPECT_EQ(back->ToVector<T>(), tensor.ToVector<T>());
      });
    }
  }
}

TEST(NpyTest, BytesEqualThoseOfNumpy) {
  const std::string path = PathOf("bytes_of");
  ASSERT_THAT(WriteNpy(path, Tensor::FromVector<int32_t>({1, 2, 3}, {3})),
              IsOk());
  const std::string expected =
      std::string("\x93NUMPY\1\0v\0", 10) +
      "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }" +
      std::string(60, ' ') + "\n" + std::string("\1\0\0\0\2\0\0\0\3\0\0\0", 12);
  EXPECT_EQ(Contents(path), expected);
}

TEST(NpyTest, FortranOrderIsConvertedToRowMajor) {
  const auto tensor = ReadBytes(
      File("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }\n",
           std::string("\0\3\1\4\2\5", 6)));
  ASSERT_THAT(tensor, IsOk());
  EXPECT_EQ(tensor->shape(), (Shape{2, 3}));
  EXPECT_TRUE(tensor->is_contiguous());
  EXPECT_THAT(tensor->ToVector<uint8_t>(), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(NpyTest, BigEndianIsSwapped) {
  const auto tensor = ReadBytes(
      File("{'descr': '>i4', 'fortran_order': False, 'shape': (2,), }\n",
           std::string("\0\0\1\2\xff\xff\xff\xfe", 8)));
  ASSERT_THAT(tensor, IsOk());
  EXPECT_THAT(tensor->ToVector<int32_t>(), ElementsAre(258, -2));
}

TEST(NpyTest, LaterVersionsHaveFourBytesOfLength) {
  const std::string dictionary =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (), }\n";
  std::string bytes("\x93NUMPY\2\0", 8);
  bytes += static_cast<char>(dictionary.size());
  bytes += std::string(3, '\0');
  const auto tensor =
      ReadBytes(bytes + dictionary + std::string("\0\0\x80\x3f", 4));
  ASSERT_THAT(tensor, IsOk());
  EXPECT_EQ(*tensor->item<float>(), 1.0f);
}

TEST(NpyTest, BoolBytesBecomeZeroOrOne) {
  const auto tensor = ReadBytes(
      File("{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }\n",
           std::string("\0\1\7", 3)));
  ASSERT_THAT(tensor, IsOk());
  EXPECT_EQ(static_cast<const uint8_t*>(tensor->raw_data())[2], 1);
}

TEST(NpyTest, MalformedFilesAreRejectedByName) {
  const auto expect_refused = [](const std::string& bytes, const char* why) {
    EXPECT_THAT(
        ReadBytes(bytes),
        StatusIs(kInvalid, AllOf(HasSubstr(PathOf("bytes")), HasSubstr(why))));
  };
  const std::string dictionary =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
  expect_refused("", "within its header");
  expect_refused("\x93NUMPY", "within its header");
  expect_refused("not an array at all", "does not begin");
  expect_refused(File(dictionary, "").substr(0, 30), "within its header");
  expect_refused(File(dictionary, "1234567"), "7 bytes of data");
  expect_refused(File(dictionary, "123456789"), "9 bytes of data");
  expect_refused(File("{'descr': '|O', 'fortran_order': False, 'shape': ()}",
                      "cos\nsystem\n"),
                 "pickled");
  // The header declares 8 EB; the file is too short, so nothing is allocated.
  expect_refused(File("{'descr': '|u1', 'fortran_order': False, 'shape': "
                      "(9223372036854775807,)}",
                      "x"),
                 "does not match");
  expect_refused(File("{'descr': '<f8', 'fortran_order': False, 'shape': "
                      "(2305843009213693952,)}",
                      ""),
                 "does not match");
  std::string long_header("\x93NUMPY\2\0\xff\xff\xff\xff", 12);
  expect_refused(long_header, "a header of 4294967295 bytes");
  EXPECT_THAT(ReadNpy(PathOf("none")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(PathOf("none"))));
}

TEST(NpyTest, Bf16AndUndefinedTensorsAreNotWritten) {
  EXPECT_THAT(
      WriteNpy(PathOf("no"), Tensor::Ones({1}, {.dtype = DType::kBF16})),
      StatusIs(kInvalid, HasSubstr("bf16")));
  EXPECT_THAT(WriteNpy(PathOf("no"), Tensor()), StatusIs(kInvalid));
  EXPECT_NE(access(PathOf("no").c_str(), F_OK), 0);
}

TEST(NpyTest, MutatedFilesNeverCrash) {
  std::mt19937_64 random(20240303);
  const std::string path = PathOf("seed");
  ASSERT_THAT(WriteNpy(path, *Tensor::Arange(12).Reshape({3, 4})), IsOk());
  const std::string seed = Contents(path);
  int valid = 0;
  for (int i = 0; i < 10000; ++i) {
    std::string bytes = seed;
    for (uint64_t n = random() % 3 + 1; n > 0; --n) {
      const size_t at = random() % (random() % 2 == 0 ? bytes.size() : 70);
      switch (random() % 3) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
          break;
        default:
          bytes.resize(bytes.size() - random() % 8);
      }
    }
    const auto tensor = ReadBytes(bytes);
    if (tensor.ok()) {
      ++valid;
      EXPECT_LE(tensor->byte_size(), static_cast<int64_t>(bytes.size()));
    } else {
      EXPECT_EQ(tensor.status().code(), kInvalid);
    }
  }
  EXPECT_GT(valid, 100);
}

}  // namespace
}  // namespace hawser::tensor

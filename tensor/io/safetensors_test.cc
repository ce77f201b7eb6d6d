#include "tensor/io/safetensors.h"

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::tensor {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

std::string PathOf(const std::string& name) {
  return testing::TempDir() + "/safetensors_test_" + name + ".safetensors";
}

std::string Contents(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

// A file with this header and data.
std::string FileOf(const std::string& header, const std::string& data) {
  const uint64_t bytes = header.size();
  std::string file(sizeof(bytes), '\0');
  std::memcpy(file.data(), &bytes, sizeof(bytes));
  return file + header + data;
}

absl::StatusOr<SafetensorsFile> LoadBytes(const std::string& bytes) {
  const std::string path = PathOf("bytes");
  unlink(path.c_str());  // Overwriting it would wait for the disk.
  std::ofstream(path, std::ios::binary) << bytes;
  return LoadSafetensors(path);
}

TEST(SafetensorsTest, EveryDTypeAndLayoutReadsBack) {
  SafetensorsFile file;
  file.metadata = {{"step", "12"}, {"note", "line\nbreak \"quoted\""}};
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType dtype = static_cast<DType>(i);
    const std::string name(DTypeName(dtype));
    const Tensor base = *Tensor::Arange(6, {.dtype = dtype}).Reshape({2, 3});
    file.tensors.emplace_back(name, base);
    file.tensors.emplace_back(name + ".t", *base.T());
    file.tensors.emplace_back(name + ".empty", *base.Slice(0, 0, 0));
    file.tensors.emplace_back(name + ".scalar",
                              Tensor::Ones({}, {.dtype = dtype}));
  }
  const std::string path = PathOf("round");
  ASSERT_THAT(SaveSafetensors(path, file), IsOk());
  const auto back = LoadSafetensors(path);
  ASSERT_THAT(back, IsOk());
  EXPECT_EQ(back->metadata, file.metadata);
  EXPECT_EQ(back->tensors.size(), file.tensors.size());
  for (const auto& [name, tensor] : file.tensors) {
    const Tensor* const found = back->Find(name);
    ASSERT_NE(found, nullptr) << name;
    EXPECT_EQ(found->dtype(), tensor.dtype());
    EXPECT_EQ(found->shape(), tensor.shape());
    VisitDType(tensor.dtype(), [&, &original = tensor]<class T>() {
      EXPECT_EQ(found->ToVector<T>(), original.ToVector<T>());
    });
  }
  EXPECT_EQ(back->Find("none"), nullptr);
}

TEST(SafetensorsTest, DataIsAlignedToItsElements) {
  SafetensorsFile file;
  file.tensors.emplace_back("odd", Tensor::Ones({3}, {.dtype = DType::kU8}));
  file.tensors.emplace_back("half", Tensor::Ones({3}, {.dtype = DType::kF16}));
  file.tensors.emplace_back("wide", Tensor::Ones({3}, {.dtype = DType::kF64}));
  const std::string path = PathOf("aligned");
  ASSERT_THAT(SaveSafetensors(path, file), IsOk());
  const auto back = LoadSafetensors(path);
  ASSERT_THAT(back, IsOk());
  EXPECT_EQ(back->tensors[0].first, "wide");
  EXPECT_EQ(back->tensors[1].first, "half");
  EXPECT_EQ(back->tensors[2].first, "odd");
  const std::string bytes = Contents(path);
  EXPECT_EQ((bytes.size() - 24 - 6 - 3) % 64, 0u);
}

TEST(SafetensorsTest, ReadsAFileWrittenByHand) {
  const auto file = LoadBytes(
      FileOf("{\"__metadata__\":{\"format\":\"pt\"},"
             "\"w\":{\"dtype\":\"I32\",\"shape\":[2],\"data_offsets\":[1,9]},"
             "\"b\":{\"dtype\":\"BOOL\",\"shape\":[1],\"data_offsets\":[0,1]}}",
             std::string("\7\1\0\0\0\2\0\0\0", 9)));
  ASSERT_THAT(file, IsOk());
  EXPECT_THAT(file->metadata, ElementsAre(Pair("format", "pt")));
  EXPECT_THAT(file->Find("w")->ToVector<int32_t>(), ElementsAre(1, 2));
  EXPECT_EQ(*static_cast<const uint8_t*>(file->Find("b")->raw_data()), 1);
}

TEST(SafetensorsTest, EmptyFileOfNoTensors) {
  const std::string path = PathOf("none_in_it");
  ASSERT_THAT(SaveSafetensors(path, {}), IsOk());
  EXPECT_TRUE(LoadSafetensors(path)->tensors.empty());
}

TEST(SafetensorsTest, MalformedFilesAreRejectedByName) {
  const auto expect_refused = [](const std::string& bytes, const char* why) {
    EXPECT_THAT(
        LoadBytes(bytes),
        StatusIs(kInvalid, AllOf(HasSubstr(PathOf("bytes")), HasSubstr(why))));
  };
  expect_refused("", "shorter than");
  expect_refused("1234567", "shorter than");
  expect_refused(std::string(8, '\0'), "begin with {");
  expect_refused(std::string(8, '\xff'),
                 "a header of 18446744073709551615 bytes; the format allows");
  expect_refused(std::string("\x10\0\0\0\0\0\0\0{}", 10),
                 "a header of 16 bytes in a file of 10");
  // The declared header of 100 MB is allowed, but the file is shorter.
  expect_refused(std::string("\0\xe1\xf5\5\0\0\0\0", 8),
                 "a header of 100000000 bytes in a file of 8");
  expect_refused(std::string("\1\xe1\xf5\5\0\0\0\0", 8), "the format allows");
  expect_refused(FileOf("{\"t\":{\"dtype\":\"U8\",\"shape\":[4],"
                        "\"data_offsets\":[0,4]}}",
                        "123"),
                 "but the file has 3");
  expect_refused(FileOf("{\"t\\u0000\\n\":1}", ""), "\"t\\x00\\n\"");
  EXPECT_THAT(
      LoadSafetensors(PathOf("missing")),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr(PathOf("missing"))));
}

TEST(SafetensorsTest, TorchSaveFilesAreRejectedWithTheConversion) {
  for (const std::string& bytes :
       {// torch.save since version 1.6 and before; pickle.dump.
        std::string("PK\x03\x04\0\0\x08\x08\0\0\0\0\0\0\0\0", 16),
        std::string("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9", 9),
        std::string("\x80\x04\x95\x0a\0\0\0\0\0\0\0}\x94.", 14)}) {
    EXPECT_THAT(LoadBytes(bytes),
                StatusIs(kInvalid, AllOf(HasSubstr(PathOf("bytes")),
                                         HasSubstr("save_file"))));
  }
  // The first bytes of its length look like a pickle.
  const std::string header = "{}" + std::string(638, ' ');
  const std::string length = std::string("\x80\x02\0\0\0\0\0\0", 8);
  EXPECT_THAT(LoadBytes(length + header), IsOk());
}

TEST(SafetensorsTest, InvalidTensorsAreNotSaved) {
  const std::string path = PathOf("old");
  SafetensorsFile old;
  old.tensors.emplace_back("a", Tensor::Scalar(1));
  ASSERT_THAT(SaveSafetensors(path, old), IsOk());
  const std::string before = Contents(path);
  const auto expect_refused = [&](std::string name, Tensor tensor,
                                  const char* why) {
    SafetensorsFile file = old;
    file.tensors.emplace_back(std::move(name), std::move(tensor));
    EXPECT_THAT(SaveSafetensors(path, file),
                StatusIs(kInvalid, AllOf(HasSubstr(path), HasSubstr(why))));
  };
  expect_refused("a", Tensor::Scalar(2), "twice");
  expect_refused("__metadata__", Tensor::Scalar(2), "reserved");
  expect_refused("u", Tensor(), "undefined");
  expect_refused("\xff", Tensor::Scalar(2), "UTF-8");
  EXPECT_EQ(Contents(path), before);
}

// A file size limit simulates a full disk.
TEST(SafetensorsTest, FailedSaveKeepsTheOldFile) {
  const std::string path = PathOf("full");
  SafetensorsFile file;
  file.tensors.emplace_back("a", Tensor::Scalar(1));
  ASSERT_THAT(SaveSafetensors(path, file), IsOk());
  const std::string before = Contents(path);
  file.tensors.emplace_back("big", Tensor::Zeros({100000}));
  signal(SIGXFSZ, SIG_IGN);
  rlimit unlimited;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &unlimited), 0);
  rlimit limit = unlimited;
  limit.rlim_cur = 10000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const absl::Status status = SaveSafetensors(path, file);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &unlimited), 0);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(path), HasSubstr("File too large")));
  EXPECT_EQ(Contents(path), before);
}

TEST(SafetensorsTest, MutatedFilesNeverCrash) {
  std::mt19937_64 random(20240304);
  const std::string seed = FileOf(
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
      "\"b\":{\"dtype\":\"BOOL\",\"shape\":[5],\"data_offsets\":[24,29]}}",
      std::string(29, 'x'));
  int valid = 0;
  for (int i = 0; i < 10000; ++i) {
    std::string bytes = seed;
    for (uint64_t n = random() % 2 + 1; n > 0; --n) {
      const size_t at = random() % bytes.size();
      switch (random() % 4) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
          break;
        case 2:
          bytes.resize(bytes.size() - random() % 8);
          break;
        default:
          bytes[random() % 8] = static_cast<char>(random());
      }
    }
    const auto file = LoadBytes(bytes);
    if (file.ok()) {
      ++valid;
    } else {
      EXPECT_EQ(file.status().code(), kInvalid) << file.status();
    }
  }
  EXPECT_GT(valid, 100);
}

}  // namespace
}  // namespace hawser::tensor

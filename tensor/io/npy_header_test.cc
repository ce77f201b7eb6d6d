#include "tensor/io/npy_header.h"

#include <random>
#include <string>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::tensor::internal {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(NpyHeaderTest, ReadsHeadersWrittenByNumpy) {
  const auto header = ParseNpyDictionary(
      "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }      \n");
  ASSERT_THAT(header, IsOk());
  EXPECT_EQ(header->dtype, DType::kF32);
  EXPECT_FALSE(header->big_endian);
  EXPECT_FALSE(header->fortran_order);
  EXPECT_EQ(header->shape, (Shape{3, 4}));
}

TEST(NpyHeaderTest, ReadsEveryVariantOfTheGrammar) {
  const auto header = ParseNpyDictionary(
      "{\"shape\":(7L,),'fortran_order':True,'descr':'>i8'}");
  ASSERT_THAT(header, IsOk());
  EXPECT_EQ(header->dtype, DType::kI64);
  EXPECT_TRUE(header->big_endian);
  EXPECT_TRUE(header->fortran_order);
  EXPECT_EQ(header->shape, (Shape{7}));
  EXPECT_EQ(ParseNpyDictionary(
                "{'descr': '|b1', 'fortran_order': False, 'shape': ()}")
                ->shape,
            Shape{});
  EXPECT_EQ(ParseNpyDictionary(
                "{'descr': '=f2', 'fortran_order': False, 'shape': (0,5)}")
                ->shape,
            (Shape{0, 5}));
}

TEST(NpyHeaderTest, HeadersRoundTrip) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType dtype = static_cast<DType>(i);
    for (const Shape& shape : {Shape{}, Shape{5}, Shape{2, 0, 3}}) {
      const auto text = FormatNpyHeader(dtype, shape);
      if (dtype == DType::kBF16) {
        EXPECT_THAT(text, StatusIs(kInvalid, HasSubstr("bf16")));
        continue;
      }
      ASSERT_THAT(text, IsOk());
      EXPECT_EQ(text->size() % 64, 0u);
      EXPECT_THAT(NpyLengthBytes(text->substr(0, 8)), IsOkAndHolds(2u));
      const auto header = ParseNpyDictionary(text->substr(10));
      ASSERT_THAT(header, IsOk());
      EXPECT_EQ(header->dtype, dtype);
      EXPECT_EQ(header->shape, shape);
    }
  }
}

TEST(NpyHeaderTest, VersionsAndMagic) {
  EXPECT_THAT(NpyLengthBytes(std::string("\x93NUMPY\1\0", 8)),
              IsOkAndHolds(2u));
  EXPECT_THAT(NpyLengthBytes(std::string("\x93NUMPY\2\0", 8)),
              IsOkAndHolds(4u));
  EXPECT_THAT(NpyLengthBytes(std::string("\x93NUMPY\3\0", 8)),
              IsOkAndHolds(4u));
  EXPECT_THAT(NpyLengthBytes(std::string("\x93NUMPY\4\0", 8)),
              StatusIs(kInvalid, HasSubstr("version 4.0")));
  EXPECT_THAT(NpyLengthBytes(std::string("\x93NUMPY\1\1", 8)),
              StatusIs(kInvalid));
  EXPECT_THAT(NpyLengthBytes("PK\3\4abcd"),
              StatusIs(kInvalid, HasSubstr("unzip")));
  EXPECT_THAT(NpyLengthBytes(""), StatusIs(kInvalid));
}

TEST(NpyHeaderTest, MalformedDictionariesAreRejected) {
  const auto expect_refused = [](const std::string& text, const char* why) {
    EXPECT_THAT(ParseNpyDictionary(text), StatusIs(kInvalid, HasSubstr(why)))
        << text;
  };
  const auto with_descr = [](const std::string& descr) {
    return "{'descr': " + descr + ", 'fortran_order': False, 'shape': (1,)}";
  };
  const auto with_shape = [](const std::string& shape) {
    return "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + "}";
  };
  expect_refused("", "expected '{'");
  expect_refused("{", "a string");
  expect_refused("{}", "lacks");
  expect_refused("{'descr': '<f4'}", "lacks");
  expect_refused(with_shape("(1,)") + "x", "the end");
  expect_refused("{'descr': '<f4', 'descr': '<f4'}", "twice");
  expect_refused("{'x': 1}", "unknown key 'x'");
  expect_refused(with_descr("'|O'"), "pickled");
  expect_refused(with_descr("[('a', '<f4')]"), "structured");
  expect_refused(with_descr("'<f16'"), "dtype '<f16'");
  expect_refused(with_descr("'<V2'"), "dtype '<V2'");
  expect_refused(with_descr("''"), "dtype ''");
  expect_refused(with_descr("'<'"), "dtype '<'");
  expect_refused(with_descr("'<<f4'"), "dtype");
  expect_refused(with_descr("'\\x3cf4'"), "without escapes");
  expect_refused(with_descr("'<f4"), "dtype");
  expect_refused(with_descr("__import__('os')"), "a string");
  expect_refused("{'descr': '<f4', 'fortran_order': 0, 'shape': ()}",
                 "True or False");
  expect_refused(with_shape("(3)"), "','");
  expect_refused(with_shape("3"), "'('");
  expect_refused(with_shape("(,)"), "a size");
  expect_refused(with_shape("(1, -2)"), "a size");
  expect_refused(with_shape("(1, +2)"), "a size");
  expect_refused(with_shape("(1, 9223372036854775808)"), "a size");
  expect_refused(with_shape("(4294967296, 4294967296)"), "int64");
  expect_refused(with_shape("(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)"),
                 "more than 16");
  expect_refused(with_shape("(1, 2"), "')'");
  expect_refused(with_shape("((1,), 2)"), "a size");
}

TEST(NpyHeaderTest, MutatedDictionariesNeverCrash) {
  std::mt19937_64 random(20240301);
  const std::string seed =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }  \n";
  const std::string alphabet = "{}()[]',:\"\\ \n0123456789-LTFOVabdefrt<>|=\0";
  int valid = 0;
  for (int i = 0; i < 10000; ++i) {
    std::string text = seed;
    for (uint64_t n = random() % 3 + 1; n > 0; --n) {
      const size_t at = random() % (text.size() + 1);
      switch (random() % 3) {
        case 0:
          text.insert(at, 1, alphabet[random() % alphabet.size()]);
          break;
        case 1:
          text.erase(at, random() % 3);
          break;
        default:
          text.replace(at, 1, 1, alphabet[random() % alphabet.size()]);
      }
    }
    const auto header = ParseNpyDictionary(text);
    if (header.ok()) {
      ++valid;
      EXPECT_THAT(header->shape.CheckedNumElements(), IsOk());
    } else {
      EXPECT_EQ(header.status().code(), kInvalid);
      EXPECT_EQ(header.status().message().find('\n'), absl::string_view::npos);
    }
  }
  EXPECT_GT(valid, 100);
}

}  // namespace
}  // namespace hawser::tensor::internal

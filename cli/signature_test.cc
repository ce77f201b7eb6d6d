#include "cli/signature.h"

#include <string>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::cli {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(SignatureTest, TypesAreReadWithTheirParameters) {
  const auto signature =
      ParseSignature("map<string, list<Tensor>>(int64, tuple<bool, pkg.Type>)");
  ASSERT_THAT(signature, IsOk());
  EXPECT_EQ(ToString(signature->result), "map<string, list<Tensor>>");
  EXPECT_THAT(signature->parameters,
              ElementsAre(TypeName{"int64"},
                          TypeName{"tuple", {{"bool"}, {"pkg.Type"}}}));
  EXPECT_THAT(ParseSignature("void()")->parameters, IsEmpty());
  EXPECT_EQ(ToString(ParseSignature("tuple<>()")->result), "tuple");
}

TEST(SignatureTest, OneTypeIsRead) {
  EXPECT_EQ(*ParseType("list<int64>"), (TypeName{"list", {{"int64"}}}));
  for (const char* text : {"", "list<int64", "int64 (", "a(b)", "a<b>c"}) {
    EXPECT_THAT(ParseType(text), StatusIs(absl::StatusCode::kInvalidArgument,
                                          HasSubstr("is not a type")))
        << text;
  }
}

TEST(SignatureTest, MalformedSignaturesAreRejected) {
  for (const char* text :
       {"", "int64", "int64(", "int64)", "(int64)", "int64(int64", "a(b,c)",
        "a<b(c)", "a(b)c", "a(, b)", "a(b, )", "a(<b>)"}) {
    EXPECT_THAT(ParseSignature(text),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << text;
  }
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "list<";
  EXPECT_THAT(
      ParseSignature(deep + "int64(" + deep),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("too deep")));
}

}  // namespace
}  // namespace hawser::cli

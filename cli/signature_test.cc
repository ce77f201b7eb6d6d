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
using ::testing::Pair;

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

TEST(SignatureTest, FieldsOfStructsAreRead) {
  const auto signature = ParseSignature(
      "stream pkg.Node(list<pkg.Node>) where pkg.Node{value: map<string, "
      "int64>, next: optional<pkg.Node>}; Empty{}");
  ASSERT_THAT(signature, IsOk());
  EXPECT_TRUE(signature->is_stream);
  EXPECT_EQ(ToString(signature->parameters[0]), "list<pkg.Node>");
  EXPECT_THAT(
      signature->definitions,
      ElementsAre(
          Pair("Empty", IsEmpty()),
          Pair("pkg.Node",
               ElementsAre(FieldType{"value", {"map", {{"string"}, {"int64"}}}},
                           FieldType{"next", {"optional", {{"pkg.Node"}}}}))));
  EXPECT_EQ(ToString(signature->definitions.at("pkg.Node")),
            "value: map<string, int64>, next: optional<pkg.Node>");
  EXPECT_EQ(WithoutDefinitions("a(b) where b{}"), "a(b)");
  EXPECT_EQ(WithoutDefinitions("a(b)"), "a(b)");
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
  for (const char* text : {"",
                           "int64",
                           "int64(",
                           "int64)",
                           "(int64)",
                           "int64(int64",
                           "a(b,c)",
                           "a<b(c)",
                           "a(b)c",
                           "a(, b)",
                           "a(b, )",
                           "a(<b>)",
                           "a() where ",
                           "a() where b",
                           "a() where b{",
                           "a() where b{c}",
                           "a() where b{c: }",
                           "a() where b{: d}",
                           "a() where b{c: d",
                           "a() where b{c: d, }",
                           "a() where b{c: d};",
                           "a() where b{}; ",
                           "a() where {c: d}",
                           "a() where b{}; b{}",
                           "a() where b{c: d{}}"}) {
    EXPECT_THAT(ParseSignature(text),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << text;
  }
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "list<";
  EXPECT_THAT(ParseSignature(deep + "int64(" + deep),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("bytes")));
  deep.resize(5 * 1000);
  EXPECT_THAT(
      ParseSignature("a() where b{c: " + deep),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("too deep")));
}

}  // namespace
}  // namespace hawser::cli

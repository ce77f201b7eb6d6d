#include "cli/json_value.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/testing/status_matchers.h"
#include "cli/signature.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/rpc.pb.h"

namespace hawser::cli {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::nlohmann::json;
using ::testing::HasSubstr;

// Structs in the signatures of this test.
constexpr char kDefinitions[] =
    " where Range{low: double, high: double}; Node{range: optional<Range>, "
    "children: list<Node>}; Empty{}; Typed{type: string, value: int64}";

// Encodes `text` as an argument of type `type`, decodes it as a result of that
// type, and returns it.
absl::StatusOr<std::string> RoundTrip(const std::string& text,
                                      const std::string& type) {
  v1::CallRequest request;
  const absl::StatusOr<Signature> signature =
      ParseSignature(absl::StrCat(type, "(", type, ")", kDefinitions));
  if (!signature.ok()) return signature.status();
  const absl::Status status =
      AddArgument(json::parse(text), *signature, request);
  if (!status.ok()) return status;
  v1::CallReply reply;
  *reply.mutable_results() = request.arguments();
  *reply.mutable_tensors() = request.tensors();
  *reply.mutable_tensor_data() = request.tensor_data();
  const absl::StatusOr<json> result = ResultOf(reply, *signature);
  if (!result.ok()) return result.status();
  return result->dump();
}

// The result of a function whose signature does not tell its type.
absl::StatusOr<json> ResultOf(const v1::CallReply& reply) {
  return ResultOf(reply, *ParseSignature("a.Type()"));
}

TEST(JsonValueTest, ValuesOfEachTypeRoundTrip) {
  const struct {
    const char* type;
    const char* text;
  } kCases[] = {
      {"bool", "true"},
      {"int64", "-9223372036854775808"},
      {"uint64", "18446744073709551615"},
      {"int8", "-3"},
      {"double", "2.5"},
      {"float", "\"nan\""},
      {"double", "\"-inf\""},
      {"string", "\"t\\u00e9xt\""},
      {"string", "{\"base64\":\"/wA=\"}"},
      {"list<int64>", "[-1,2]"},
      {"list<uint8>", "[1,2]"},
      {"list<double>", "[1.5,\"inf\"]"},
      {"list<string>", "[\"a\",\"b\"]"},
      {"list<list<int64>>", "[[1],[]]"},
      {"tuple<int64, string>", "[1,\"a\"]"},
      {"map<string, int64>", "{\"a\":1,\"b\":2}"},
      {"map<int64, string>", "[[1,\"a\"],[2,\"b\"]]"},
      {"optional<int64>", "null"},
      {"optional<int64>", "3"},
      {"Tensor", "null"},
      {"Tensor", "{\"data\":[1.0,2.0],\"dtype\":\"f64\",\"shape\":[2,1]}"},
      {"Tensor", "{\"data\":[-1,2],\"dtype\":\"i64\",\"shape\":[2]}"},
      {"Tensor", "{\"data\":[-1],\"dtype\":\"i32\",\"shape\":[]}"},
      {"Tensor", "{\"data\":[255],\"dtype\":\"u8\",\"shape\":[1]}"},
      {"Tensor", "{\"data\":[true,false],\"dtype\":\"bool\",\"shape\":[2]}"},
      {"Tensor", "{\"data\":[],\"dtype\":\"f32\",\"shape\":[0,3]}"},
      {"list<Tensor>",
       "[{\"data\":[1.0],\"dtype\":\"f32\",\"shape\":[]},null]"},
      {"Range", R"({"high":2.5,"low":"-inf"})"},
      {"Empty", "{}"},
      {"Typed", R"({"type":"list<int64>","value":3})"},
      {"list<optional<Range>>", R"([null,{"high":1.0,"low":0.0}])"},
      {"map<string, Range>", R"({"a":{"high":1.0,"low":0.0}})"},
      {"map<Range, Empty>", R"([[{"high":1.0,"low":0.0},{}]])"},
      {"tuple<int64, Range>", R"([1,{"high":1.0,"low":0.0}])"},
      {"Node", R"({"children":[{"children":[],"range":null}],)"
               R"("range":{"high":1.0,"low":0.0}})"},
  };
  for (const auto& [type, text] : kCases) {
    EXPECT_EQ(RoundTrip(text, type).value_or("an error"),
              json::parse(text).dump())
        << type;
  }
}

TEST(JsonValueTest, NestedListsAreTensors) {
  EXPECT_EQ(RoundTrip("[[1, 2], [3, 4]]", "Tensor").value(),
            "{\"data\":[1.0,2.0,3.0,4.0],\"dtype\":\"f32\",\"shape\":[2,2]}");
  EXPECT_EQ(RoundTrip("7", "Tensor").value(),
            "{\"data\":[7.0],\"dtype\":\"f32\",\"shape\":[]}");
}

TEST(JsonValueTest, MessagesAreSentSerialised) {
  EXPECT_EQ(RoundTrip("{\"base64\":\"CAE=\"}", "pkg.Type").value(),
            "{\"base64\":\"CAE=\",\"message\":\"pkg.Type\"}");
}

TEST(JsonValueTest, ErrorsNameThePlaceOfTheFault) {
  const struct {
    const char* type;
    const char* text;
    const char* error;
  } kCases[] = {
      {"int64", "1.5", "argument 1 must be int64, not 1.5"},
      {"int64", "9223372036854775808", "must be int64"},
      {"uint64", "-1", "must be uint64"},
      {"bool", "1", "must be bool"},
      {"string", "1", "must be string"},
      {"double", "\"x\"", "must be double"},
      {"list<int64>", "[1, true]", "argument 1[1] must be int64, not true"},
      {"tuple<int64, int64>", "[1]", "must be tuple<int64, int64>"},
      {"map<string, bool>", "{\"a\": 1}", "argument 1[\"a\"] must be bool"},
      {"map<int64, bool>", "[[1]]", "must be map<int64, bool>"},
      {"pkg.Type", "{}", "base64"},
      {"RRef<Tensor>", "1", "JSON does not support"},
      {"Tensor", "[[1], [2, 3]]", "differ in length"},
      {"Tensor", "[[1], 2]", "differ in depth"},
      {"Tensor", "[1, [2]]", "differ in length or depth"},
      {"Tensor", "[\"x\"]", "cannot hold"},
      {"Tensor", "{\"dtype\": \"f7\", \"shape\": [], \"data\": [1]}", "f7"},
      {"Tensor", "{\"dtype\": \"f16\", \"shape\": [1], \"data\": [1]}", "f16"},
      {"Tensor", "{\"shape\": [2], \"data\": [1]}", "does not fit"},
      {"Tensor", "{\"shape\": [-1], \"data\": [1]}", "does not fit"},
      {"Tensor", "{\"dtype\": \"u8\", \"shape\": [1], \"data\": [256]}", "256"},
      {"Tensor", "{\"shape\": 1, \"data\": [1]}", "both lists"},
      {"Tensor", "{}", "both lists"},
      {"Range", "[1, 2]",
       "argument 1 must be Range{low: double, high: double}, not [1,2]"},
      {"Range", R"({"low": 1})",
       "argument 1 does not have the field 'high' of Range{low: double, high: "
       "double}"},
      {"Range", R"({"low": 1, "hihg": 2})",
       "argument 1 has a field 'hihg', which is not in Range{low: double, "
       "high: double}: did you mean 'high'?"},
      {"Range", R"({"low": 1, "high": true})",
       "argument 1.high must be double, not true"},
      {"list<Node>",
       R"([{"range": null, "children": [{"range": {}, "children": []}]}])",
       "argument 1[0].children[0].range does not have the field 'low'"},
  };
  for (const auto& [type, text, error] : kCases) {
    EXPECT_THAT(RoundTrip(text, type),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(error)))
        << type << " " << text;
  }
}

TEST(JsonValueTest, InconsistentRepliesAreErrors) {
  v1::CallReply reply;
  reply.mutable_results()->add_values();
  EXPECT_THAT(ResultOf(reply), StatusIs(absl::StatusCode::kInternal));
  reply.mutable_results()->mutable_values(0)->set_tensor_index(0);
  EXPECT_THAT(ResultOf(reply), StatusIs(absl::StatusCode::kInternal));
  v1::TensorHeader& header = *reply.add_tensors();
  EXPECT_THAT(ResultOf(reply), StatusIs(absl::StatusCode::kInternal));
  std::string& data = *reply.add_tensor_data();
  EXPECT_THAT(ResultOf(reply), StatusIs(absl::StatusCode::kInternal));
  header.set_dtype(v1::DTYPE_F32);
  header.add_dims(int64_t{1} << 62);
  header.add_dims(8);
  EXPECT_THAT(ResultOf(reply), StatusIs(absl::StatusCode::kInternal));
  header.clear_dims();
  data = "abc";
  EXPECT_THAT(ResultOf(reply), StatusIs(absl::StatusCode::kInternal));
  data = "abcd";
  EXPECT_THAT(ResultOf(reply), IsOk());
  reply.mutable_results()->add_values()->set_bool_value(true);
  EXPECT_THAT(ResultOf(reply), StatusIs(absl::StatusCode::kInternal));
  reply.clear_results();
  EXPECT_EQ(ResultOf(reply)->dump(), "null");
}

TEST(JsonValueTest, ResultsThatDoNotFitTheirStructAreErrors) {
  const Signature signature =
      *ParseSignature(absl::StrCat("list<Range>()", kDefinitions));
  const auto refused = StatusIs(absl::StatusCode::kInternal,
                                HasSubstr("a Range without its fields low"));
  v1::CallReply reply;
  v1::Value& range = *reply.mutable_results()
                          ->add_values()
                          ->mutable_list_value()
                          ->add_values();
  range.mutable_null_value();
  EXPECT_THAT(ResultOf(reply, signature), refused);
  range.mutable_list_value()->add_values()->set_double_value(1);
  EXPECT_THAT(ResultOf(reply, signature), refused);
  range.mutable_list_value()->add_values()->set_double_value(2);
  EXPECT_THAT(ResultOf(reply, signature), IsOk());
  range.mutable_list_value()->add_values()->set_double_value(3);
  EXPECT_THAT(ResultOf(reply, signature), refused);
}

// A worker that is not trusted may send such a signature.
TEST(JsonValueTest, StructsThatContainThemselvesEndWithTheirValues) {
  const Signature signature = *ParseSignature("A(A) where A{a: A}");
  v1::CallRequest request;
  EXPECT_THAT(
      AddArgument(json::parse(R"({"a": {"a": {}}})"), signature, request),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("argument 1.a.a does not have the field")));
}

TEST(JsonValueTest, HalfPrecisionBecomesNumbers) {
  v1::CallReply reply;
  reply.mutable_results()->add_values()->set_tensor_index(0);
  reply.add_tensors()->set_dtype(v1::DTYPE_F16);
  reply.mutable_tensors(0)->add_dims(5);
  // 1, -2, the smallest, infinity, 65504.
  reply.add_tensor_data(
      std::string("\x00\x3c\x00\xc0\x01\x00\x00\x7c\xff\x7b", 10));
  EXPECT_EQ((*ResultOf(reply))["data"].dump(),
            "[1.0,-2.0,5.960464477539063e-08,\"inf\",65504.0]");
  reply.mutable_tensors(0)->set_dtype(v1::DTYPE_BF16);
  *reply.mutable_tensor_data(0) =
      std::string("\x80\x3f\x00\xc0\x00\x00\x80\x7f\xc0\x7f", 10);
  EXPECT_EQ((*ResultOf(reply))["data"].dump(),
            "[1.0,-2.0,0.0,\"inf\",\"nan\"]");
}

}  // namespace
}  // namespace hawser::cli

#include "rpc/functions/function_registry.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/wire/structs/struct_traits.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A type with a name but without WireTraits.
struct Model {
  static constexpr std::string_view kTypeName = "test.Model";
  std::unique_ptr<int> weight;
};

struct Point {
  int64_t x = 0;
};
struct Range {
  int64_t low = 0;
  std::optional<Point> high;
};

}  // namespace

template <>
struct WireTraits<Point> : StructTraits<Point> {
  static std::string TypeName() { return "test.Point"; }
  static constexpr auto kFields = std::tuple{Field{"x", &Point::x}};
};
template <>
struct WireTraits<Range> : StructTraits<Range> {
  static std::string TypeName() { return "test.Range"; }
  static constexpr auto kFields =
      std::tuple{Field{"low", &Range::low}, Field{"high", &Range::high}};
};

namespace {

constexpr Function<int(int, std::string)> kRepeat{"test.Repeat"};
constexpr Function<void(std::vector<Range>)> kSplit{"test.Split"};
constexpr Function<void()> kNothing{"test.Nothing"};
constexpr Function<Model(int)> kMake{"test.Make"};

// Calls `function` with encoded arguments, as for a peer's message.
template <class R, class... A>
absl::StatusOr<ErasedValue> Call(const FunctionRegistry& registry,
                                 const Function<R(A...)>& function,
                                 const std::type_identity_t<A>&... args) {
  Encoder encoder;
  EXPECT_TRUE((WireTraits<A>::Encode(encoder, args).ok() && ...));
  const std::string values = encoder.TakeValues();
  absl::StatusOr<const RegisteredFunction*> found =
      registry.Find(function.name(), function.Signature());
  if (!found.ok()) return found.status();
  Decoder decoder(nullptr, nullptr, values, encoder.TakeTensors());
  absl::StatusOr<RegisteredFunction::Invocation> invocation =
      (*found)->Prepare(decoder);
  if (!invocation.ok()) return invocation.status();
  absl::StatusOr<ErasedValue> result = absl::UnknownError("not done");
  (*std::move(invocation))(
      [&](absl::StatusOr<ErasedValue> r) { result = std::move(r); });
  return result;
}

TEST(FunctionRegistryTest, SignatureNamesTypes) {
  EXPECT_EQ(kRepeat.Signature(), "int32(int32, string)");
  EXPECT_EQ(kNothing.Signature(), "void()");
  EXPECT_EQ(kMake.Signature(), "test.Model(int32)");
}

TEST(FunctionRegistryTest, CallsRegisteredFunctions) {
  FunctionRegistry registry;
  ASSERT_THAT(registry.Register(kRepeat,
                                [](int n, const std::string& text) {
                                  return n * static_cast<int>(text.size());
                                }),
              IsOk());
  absl::StatusOr<ErasedValue> result = Call(registry, kRepeat, 3, "ab");
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(*static_cast<int*>(result->value.get()), 6);
  EXPECT_EQ(result->type->name, "int32");
  Encoder encoder;
  EXPECT_THAT(result->type->encode(encoder, result->value.get()), IsOk());
}

TEST(FunctionRegistryTest, CallablesMayReturnStatusAndFutures) {
  FunctionRegistry registry;
  ASSERT_THAT(
      registry.Register(kNothing, [] { return absl::AbortedError("no"); }),
      IsOk());
  EXPECT_THAT(Call(registry, kNothing), StatusIs(absl::StatusCode::kAborted));
  ASSERT_THAT(registry.Register(kRepeat,
                                [](int n, std::string) {
                                  return async::MakeReadyFuture<int>(n + 1);
                                }),
              IsOk());
  absl::StatusOr<ErasedValue> result = Call(registry, kRepeat, 3, "");
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(*static_cast<int*>(result->value.get()), 4);
}

TEST(FunctionRegistryTest, ResultWithoutWireTraitsIsRetained) {
  FunctionRegistry registry;
  ASSERT_THAT(registry.Register(
                  kMake, [](int n) { return Model{std::make_unique<int>(n)}; }),
              IsOk());
  absl::StatusOr<ErasedValue> result = Call(registry, kMake, 8);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(*static_cast<Model*>(result->value.get())->weight, 8);
  EXPECT_EQ(result->type->name, "test.Model");
  EXPECT_EQ(result->type->encode, nullptr);
}

TEST(FunctionRegistryTest, DuplicateNamesAreRejected) {
  FunctionRegistry registry;
  ASSERT_THAT(registry.Register(kNothing, [] {}), IsOk());
  EXPECT_THAT(
      registry.Register(kNothing, [] {}),
      StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("test.Nothing")));
}

TEST(FunctionRegistryTest, UnknownAndMismatchedFunctionsAreNamed) {
  FunctionRegistry registry;
  EXPECT_THAT(
      registry.Find("test.Repeat", "void()"),
      StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("test.Repeat")));
  ASSERT_THAT(registry.Register(kNothing, [] {}), IsOk());
  EXPECT_THAT(registry.Find("test.Nothing", "int32(bool)"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("void()"), HasSubstr("int32(bool)"))));
}

TEST(FunctionRegistryTest, FieldsThatDifferAreNamed) {
  EXPECT_EQ(kSplit.Signature(),
            "void(list<test.Range>) where test.Range{low: int64, high: "
            "optional<test.Point>}; test.Point{x: int64}");
  FunctionRegistry registry;
  ASSERT_THAT(registry.Register(kSplit, [](std::vector<Range>) {}), IsOk());
  EXPECT_THAT(registry.Find("test.Split", kSplit.Signature()), IsOk());
  EXPECT_THAT(
      registry.Find("test.Split",
                    "void(list<test.Range>) where test.Range{low: int64, high: "
                    "optional<test.Point>}; test.Point{y: int64}"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "function 'test.Split' is called with other fields than it has: "
               "the caller has test.Point{y: int64}, the function has "
               "test.Point{x: int64}"));
  EXPECT_THAT(registry.Find("test.Split", "void(list<test.Range>)"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the caller has nothing else, the function "
                                 "has test.Range{low: int64")));
  EXPECT_THAT(registry.Find("test.Split", "void() where "),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(FunctionRegistryTest, WrongArgumentsAreRefused) {
  FunctionRegistry registry;
  ASSERT_THAT(registry.Register(kNothing, [] {}), IsOk());
  Encoder encoder;
  encoder.WriteInt(1);
  const std::string values = encoder.TakeValues();
  Decoder decoder(nullptr, nullptr, values, {});
  absl::StatusOr<const RegisteredFunction*> found =
      registry.Find("test.Nothing", "void()");
  ASSERT_THAT(found, IsOk());
  EXPECT_THAT(
      (*found)->Prepare(decoder),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("test.Nothing")));
}

}  // namespace
}  // namespace hawser::rpc

#include "rpc/wire/structs/struct_traits.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/wire/decoder.h"
#include "rpc/wire/encoder.h"
#include "rpc/wire/structs/type_definitions.h"
#include "rpc/wire/wire_traits.h"

namespace hawser::rpc {
namespace {

struct Point {
  int64_t x = 0;
  std::string label;
  // Not sent.
  int64_t local = 7;
};

struct Shape {
  std::vector<Point> corners;
  std::map<std::string, Point> named;
  std::optional<double> area;
};

struct Node {
  int64_t value = 0;
  std::vector<Node> children;
};

struct Empty {};

struct WithOptional {
  std::optional<tensor::Tensor> tensor;
};

}  // namespace

template <>
struct WireTraits<Point> : StructTraits<Point> {
  static std::string TypeName() { return "test.Point"; }
  static constexpr auto kFields =
      std::tuple{Field{"x", &Point::x}, Field{"label", &Point::label}};
  static absl::Status Check(const Point& point) {
    if (point.x >= 0) return absl::OkStatus();
    return absl::OutOfRangeError("x is negative");
  }
};

template <>
struct WireTraits<Shape> : StructTraits<Shape> {
  static std::string TypeName() { return "test.Shape"; }
  static constexpr auto kFields =
      std::tuple{Field{"corners", &Shape::corners},
                 Field{"named", &Shape::named}, Field{"area", &Shape::area}};
};

template <>
struct WireTraits<Node> : StructTraits<Node> {
  static std::string TypeName() { return "test.Node"; }
  static constexpr auto kFields = std::tuple{
      Field{"value", &Node::value}, Field{"children", &Node::children}};
};

template <>
struct WireTraits<Empty> : StructTraits<Empty> {
  static std::string TypeName() { return "test.Empty"; }
  static constexpr auto kFields = std::tuple<>{};
};

template <>
struct WireTraits<WithOptional> : StructTraits<WithOptional> {
  static std::string TypeName() { return "test.Optional"; }
  static constexpr auto kFields =
      std::tuple{Field{"tensor", &WithOptional::tensor}};
};

namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

template <class T>
std::string Encoded(const T& value) {
  Encoder encoder;
  EXPECT_THAT(WireTraits<T>::Encode(encoder, value), IsOk());
  return encoder.TakeValues();
}

template <class T>
absl::StatusOr<T> Decoded(const std::string& values) {
  Decoder decoder(nullptr, nullptr, values, {});
  return WireTraits<T>::Decode(decoder);
}

template <class T>
std::string DefinitionsOf() {
  TypeDefinitions definitions;
  internal::AddDefinitions<T>(definitions);
  return definitions.ToString();
}

TEST(StructTraitsTest, FieldsTravelAsAListInOrder) {
  Shape shape;
  shape.corners = {{1, "a", 8}, {2, "b"}};
  shape.named["c"] = {3, "c"};
  const absl::StatusOr<Shape> same = Decoded<Shape>(Encoded(shape));
  ASSERT_THAT(same, IsOk());
  ASSERT_EQ(same->corners.size(), 2u);
  EXPECT_EQ(same->corners[0].label, "a");
  EXPECT_EQ(same->corners[0].local, 7);
  EXPECT_EQ(same->corners[1].x, 2);
  EXPECT_EQ(same->named.at("c").x, 3);
  EXPECT_FALSE(same->area.has_value());
  EXPECT_EQ(Encoded(Point{4, "d"}),
            Encoded(std::tuple<int64_t, std::string>(4, "d")));
  EXPECT_THAT(Decoded<Empty>(Encoded(Empty())), IsOk());
}

TEST(StructTraitsTest, StructMayContainItself) {
  const Node tree = {1, {{2, {{3, {}}}}, {4, {}}}};
  const absl::StatusOr<Node> same = Decoded<Node>(Encoded(tree));
  ASSERT_THAT(same, IsOk());
  ASSERT_EQ(same->children.size(), 2u);
  EXPECT_EQ(same->children[0].children[0].value, 3);
  EXPECT_EQ(DefinitionsOf<Node>(),
            " where test.Node{value: int64, children: list<test.Node>}");
}

TEST(StructTraitsTest, EachTypeIsDefinedOnceInOrder) {
  EXPECT_EQ(
      (DefinitionsOf<
          std::tuple<std::vector<Shape>, Point, std::pair<Empty, int>>>()),
      " where test.Shape{corners: list<test.Point>, named: map<string, "
      "test.Point>, area: optional<double>}; test.Point{x: int64, label: "
      "string}; test.Empty{}");
  EXPECT_EQ((DefinitionsOf<std::vector<std::string>>()), "");
  EXPECT_EQ(DefinitionsOf<void>(), "");
}

TEST(StructTraitsTest, ErrorsNameTypeAndField) {
  const auto refused = [](const char* text) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text));
  };
  EXPECT_THAT(Decoded<Point>(Encoded(std::pair<int64_t, int64_t>(1, 2))),
              refused("field 'label' of test.Point: expected a string"));
  EXPECT_THAT(Decoded<Point>(Encoded(std::tuple<int64_t>(1))),
              refused("field 'label' of test.Point: fewer values"));
  EXPECT_THAT(Decoded<Point>(Encoded(
                  std::tuple<int64_t, std::string, int64_t>(1, "a", 2))),
              refused("test.Point: a received list has more values"));
  EXPECT_THAT(Decoded<Point>(Encoded(std::string("a"))),
              refused("test.Point: expected a list"));
  EXPECT_THAT(
      Decoded<Point>(Encoded(Point{-1, ""})),
      StatusIs(absl::StatusCode::kOutOfRange, "test.Point: x is negative"));
  Shape shape;
  shape.corners = {{-1, ""}};
  EXPECT_THAT(Decoded<Shape>(Encoded(shape)),
              StatusIs(absl::StatusCode::kOutOfRange,
                       "field 'corners' of test.Shape: test.Point: x is "
                       "negative"));
  Encoder encoder;
  EXPECT_THAT(WireTraits<WithOptional>::Encode(
                  encoder, {std::optional(tensor::Tensor())}),
              refused("field 'tensor' of test.Optional"));
}

TEST(StructTraitsTest, NestingIsLimited) {
  Node chain;
  for (int i = 0; i < 1000; ++i) {
    Node outer;
    outer.children.push_back(std::move(chain));
    chain = std::move(outer);
  }
  EXPECT_THAT(Decoded<Node>(Encoded(chain)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("deep")));
}

TEST(StructTraitsTest, NamesAreDifferentIdentifiers) {
  const auto valid = [](std::string_view a, std::string_view b) {
    return internal::NamesAreValid(
        std::tuple{Field{a, &Point::x}, Field{b, &Point::local}});
  };
  EXPECT_TRUE(valid("x", "_y2"));
  EXPECT_FALSE(valid("x", "x"));
  for (const char* name : {"", "2x", "a b", "a:", "a}", "\xc3\xa4"}) {
    EXPECT_FALSE(valid("x", name)) << name;
  }
}

}  // namespace
}  // namespace hawser::rpc

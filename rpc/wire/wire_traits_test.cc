#include "rpc/wire/wire_traits.h"

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "async/future.h"
#include "async/random_source.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/rpc.pb.h"
#include "rpc/wire/value_fields.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

// One encoded value: bytes of a `ValueList` and tensors.
struct Encoded {
  std::string values;
  std::vector<Tensor> tensors;
};

template <class T>
Encoded Encode(const T& value) {
  Encoder encoder;
  EXPECT_THAT(WireTraits<T>::Encode(encoder, value), IsOk());
  return {encoder.TakeValues(), encoder.TakeTensors()};
}

template <class T>
absl::StatusOr<T> Decode(const Encoded& encoded) {
  Decoder decoder(nullptr, nullptr, encoded.values, encoded.tensors);
  absl::StatusOr<T> value = WireTraits<T>::Decode(decoder);
  if (value.ok()) {
    EXPECT_TRUE(decoder.AtEnd());
  }
  return value;
}

template <class T>
void ExpectRoundTrip(const T& value) {
  EXPECT_THAT(Decode<T>(Encode(value)), IsOkAndHolds(value));
}

v1::Value Parse(const Encoded& encoded) {
  v1::ValueList list;
  EXPECT_TRUE(list.ParseFromString(encoded.values));
  EXPECT_EQ(list.values_size(), 1);
  return list.values(0);
}

Encoded Serialize(const v1::Value& value) {
  v1::ValueList list;
  *list.add_values() = value;
  return {list.SerializeAsString(), {}};
}

TEST(WireTraitsTest, NumbersRoundTrip) {
  ExpectRoundTrip(true);
  ExpectRoundTrip(false);
  ExpectRoundTrip(int8_t{-128});
  ExpectRoundTrip(std::numeric_limits<int64_t>::min());
  ExpectRoundTrip(std::numeric_limits<int64_t>::max());
  ExpectRoundTrip(std::numeric_limits<uint64_t>::max());
  ExpectRoundTrip(uint16_t{7});
  ExpectRoundTrip(1.5f);
  ExpectRoundTrip(-0.1);
  ExpectRoundTrip(std::numeric_limits<double>::infinity());
}

TEST(WireTraitsTest, StringsRoundTrip) {
  ExpectRoundTrip(std::string());
  ExpectRoundTrip(std::string("text"));
  ExpectRoundTrip(std::string("\xff\x00\xfe", 3));
  ExpectRoundTrip(std::string(100000, 'x'));
}

TEST(WireTraitsTest, TextIsAStringAndOtherBytesAreBytes) {
  EXPECT_EQ(Parse(Encode(std::string("gr\xc3\xbc\xc3\x9f"))).string_value(),
            "gr\xc3\xbc\xc3\x9f");
  for (const char* bytes :
       {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"}) {
    EXPECT_TRUE(Parse(Encode(std::string(bytes))).has_bytes_value()) << bytes;
  }
}

// They would be decoded as nullopt.
TEST(WireTraitsTest, OptionalsOfNullAreRefused) {
  const auto encode = [](const auto& value) {
    Encoder encoder;
    return WireTraits<std::decay_t<decltype(value)>>::Encode(encoder, value);
  };
  EXPECT_THAT(encode(std::optional<Tensor>(Tensor())),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("an optional<Tensor> has a value")));
  EXPECT_THAT(encode(std::vector<std::optional<Tensor>>{Tensor()}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(encode(std::pair<int, std::optional<Tensor>>(1, Tensor())),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(encode(std::optional<Tensor>()), IsOk());
  EXPECT_THAT(encode(std::optional<Tensor>(Tensor::Ones({2}))), IsOk());
  EXPECT_THAT(encode(std::optional<std::vector<Tensor>>({Tensor()})), IsOk());
  ExpectRoundTrip(std::optional<std::vector<std::optional<int>>>(
      {std::optional<int>(), 3, std::nullopt}));
  ExpectRoundTrip(std::optional<std::map<int, std::optional<int>>>(
      {{1, std::optional<int>()}}));
  static_assert(WireType<std::optional<std::vector<std::optional<int>>>>);
  static_assert(!WireType<std::optional<std::optional<int>>>);
}

TEST(WireTraitsTest, ContainersRoundTrip) {
  ExpectRoundTrip(std::vector<int64_t>{});
  ExpectRoundTrip(std::vector<int64_t>{1, -2, 1LL << 60});
  ExpectRoundTrip(std::vector<uint8_t>{0, 255});
  ExpectRoundTrip(std::vector<float>{1.5f, -2});
  ExpectRoundTrip(std::vector<bool>{true, false});
  ExpectRoundTrip(std::vector<std::string>{"a", "", "b"});
  ExpectRoundTrip(std::vector<std::vector<std::vector<int>>>{{{1}, {}}, {}});
  ExpectRoundTrip(std::map<std::string, std::vector<double>>{{"a", {1, 2}}});
  ExpectRoundTrip(std::unordered_map<int, bool>{{1, true}, {2, false}});
  ExpectRoundTrip(std::optional<int>());
  ExpectRoundTrip(std::optional<int>(3));
  ExpectRoundTrip(std::vector<std::optional<std::string>>{std::nullopt, "x"});
  ExpectRoundTrip(std::pair<int, std::string>(1, "x"));
  ExpectRoundTrip(std::tuple<>());
  ExpectRoundTrip(std::tuple<int, std::pair<bool, bool>, std::string>(
      1, {true, false}, "y"));
}

TEST(WireTraitsTest, MessagesRoundTrip) {
  v1::ErrorDetail detail;
  detail.set_worker("ps0");
  absl::StatusOr<v1::ErrorDetail> back =
      Decode<v1::ErrorDetail>(Encode(detail));
  ASSERT_THAT(back, IsOk());
  EXPECT_EQ(back->worker(), "ps0");
}

TEST(WireTraitsTest, MessageOfAnotherTypeIsRefused) {
  EXPECT_THAT(Decode<v1::WorkerRecord>(Encode(v1::ErrorDetail())),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("hawser.v1.WorkerRecord")));
}

TEST(WireTraitsTest, TensorsAreEncodedByIndex) {
  const std::vector<Tensor> tensors = {Tensor::Ones({2}), Tensor(),
                                       Tensor::Zeros({3})};
  const Encoded encoded = Encode(tensors);
  ASSERT_EQ(encoded.tensors.size(), 2u);
  absl::StatusOr<std::vector<Tensor>> back =
      Decode<std::vector<Tensor>>(encoded);
  ASSERT_THAT(back, IsOk());
  EXPECT_TRUE((*back)[0].is_same(tensors[0]));
  EXPECT_FALSE((*back)[1].defined());
  EXPECT_TRUE((*back)[2].is_same(tensors[2]));
}

TEST(WireTraitsTest, TensorIndexOutOfRangeIsRefused) {
  v1::Value value;
  value.set_tensor_index(1);
  EXPECT_THAT(Decode<Tensor>(Serialize(value)),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(WireTraitsTest, NamesOfTypes) {
  EXPECT_EQ(WireTraits<int>::TypeName(), "int32");
  EXPECT_EQ(WireTraits<long>::TypeName(), "int64");
  EXPECT_EQ(WireTraits<long long>::TypeName(), "int64");
  EXPECT_EQ((WireTraits<std::map<std::string, std::vector<float>>>::TypeName()),
            "map<string, list<float>>");
  EXPECT_EQ((WireTraits<std::tuple<bool, std::optional<Tensor>>>::TypeName()),
            "tuple<bool, optional<Tensor>>");
  EXPECT_EQ((WireTraits<std::tuple<>>::TypeName()), "tuple<>");
  EXPECT_EQ(WireTraits<v1::WorkerRecord>::TypeName(), "hawser.v1.WorkerRecord");
}

// The bytes equal those of the generated classes, so any language can read
// them.
TEST(WireTraitsTest, BytesAreThoseOfTheGeneratedClasses) {
  v1::Value value;
  value.set_int_value(-5);
  EXPECT_EQ(Encode(-5).values, Serialize(value).values);
  value.set_uint_value(5);
  EXPECT_EQ(Encode(5u).values, Serialize(value).values);
  value.set_bool_value(false);
  EXPECT_EQ(Encode(false).values, Serialize(value).values);
  value.set_double_value(0.25);
  EXPECT_EQ(Encode(0.25).values, Serialize(value).values);
  value.set_string_value("s");
  EXPECT_EQ(Encode(std::string("s")).values, Serialize(value).values);
  value.mutable_null_value();
  EXPECT_EQ(Encode(std::optional<int>()).values, Serialize(value).values);
  for (int64_t n : {1, -1, 300}) value.mutable_int_list()->add_values(n);
  EXPECT_EQ(Encode(std::vector<int>{1, -1, 300}).values,
            Serialize(value).values);
  for (double n : {1.0, -1.0}) value.mutable_double_list()->add_values(n);
  EXPECT_EQ(Encode(std::vector<float>{1, -1}).values, Serialize(value).values);
  value.mutable_list_value()->add_values()->set_string_value("a");
  value.mutable_list_value()->add_values()->set_string_value("b");
  EXPECT_EQ(Encode(std::vector<std::string>{"a", "b"}).values,
            Serialize(value).values);
  v1::ValueEntry* entry = value.mutable_map_value()->add_entries();
  entry->mutable_key()->set_string_value("k");
  entry->mutable_value()->set_bool_value(true);
  EXPECT_EQ(Encode(std::map<std::string, bool>{{"k", true}}).values,
            Serialize(value).values);
  value.mutable_message_value()->set_type("hawser.v1.NullValue");
  value.mutable_message_value()->set_data("");
  EXPECT_EQ(Parse(Encode(v1::NullValue())).message_value().type(),
            "hawser.v1.NullValue");
}

TEST(WireTraitsTest, FieldNumbersAreThoseOfTheProto) {
  EXPECT_EQ(internal::kNullValue, v1::Value::kNullValueFieldNumber + 0u);
  EXPECT_EQ(internal::kTensorIndex, v1::Value::kTensorIndexFieldNumber + 0u);
  EXPECT_EQ(internal::kUintList, v1::Value::kUintListFieldNumber + 0u);
}

TEST(WireTraitsTest, IntegersMayBeOfEitherSignedness) {
  v1::Value value;
  value.set_uint_value(7);
  EXPECT_THAT(Decode<int32_t>(Serialize(value)), IsOkAndHolds(7));
  value.set_int_value(7);
  EXPECT_THAT(Decode<uint32_t>(Serialize(value)), IsOkAndHolds(7u));
}

TEST(WireTraitsTest, IntegersOutOfRangeAreRefused) {
  EXPECT_THAT(Decode<int8_t>(Encode(128)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("int8")));
  EXPECT_THAT(Decode<uint8_t>(Encode(-1)),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Decode<int64_t>(Encode(std::numeric_limits<uint64_t>::max())),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Decode<std::vector<int8_t>>(Encode(std::vector<int>{1, 500})),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(WireTraitsTest, OtherKindsAreRefusedByName) {
  EXPECT_THAT(Decode<int>(Encode(std::string("x"))),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("expected an integer, received a string")));
  EXPECT_THAT(Decode<std::vector<std::string>>(Encode(1)),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(WireTraitsTest, WrongNumbersOfElementsAreRefused) {
  using Pair = std::tuple<std::string, std::string>;
  using Triple = std::tuple<std::string, std::string, std::string>;
  EXPECT_THAT(Decode<Triple>(Encode(Pair("a", "b"))),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Decode<Pair>(Encode(Triple("a", "b", "c"))),
              StatusIs(absl::StatusCode::kInvalidArgument));
  v1::Value value;
  value.mutable_map_value()->add_entries()->mutable_key()->set_int_value(1);
  EXPECT_THAT((Decode<std::map<int, int>>(Serialize(value))),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(WireTraitsTest, RepeatedKeysAreRefused) {
  v1::Value value;
  for (int i = 0; i < 2; ++i) {
    v1::ValueEntry* entry = value.mutable_map_value()->add_entries();
    entry->mutable_key()->set_int_value(1);
    entry->mutable_value()->set_int_value(i);
  }
  EXPECT_THAT(
      (Decode<std::map<int, int>>(Serialize(value))),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("duplicate key")));
}

// A type with unbounded nesting, as a malicious sender might use.
struct Chain {
  std::vector<Chain> links;
};

}  // namespace

template <>
struct WireTraits<Chain> {
  static std::string TypeName() { return "Chain"; }
  static absl::Status Encode(Encoder& encoder, const Chain& chain) {
    encoder.BeginList();
    for (const Chain& link : chain.links) {
      RETURN_IF_ERROR(Encode(encoder, link));
    }
    encoder.EndList();
    return absl::OkStatus();
  }
  static absl::StatusOr<Chain> Decode(Decoder& decoder) {
    RETURN_IF_ERROR(decoder.EnterList());
    Chain chain;
    while (!decoder.AtEnd()) {
      ASSIGN_OR_RETURN(Chain link, Decode(decoder));
      chain.links.push_back(std::move(link));
    }
    RETURN_IF_ERROR(decoder.Leave());
    return chain;
  }
};

namespace {

Encoded Nest(int depth) {
  Encoder encoder;
  for (int i = 0; i < depth; ++i) encoder.BeginList();
  for (int i = 0; i < depth; ++i) encoder.EndList();
  return {encoder.TakeValues(), {}};
}

TEST(WireTraitsTest, NestingIsLimited) {
  EXPECT_THAT(Decode<Chain>(Nest(Decoder::kMaxDepth - 1)), IsOk());
  EXPECT_THAT(Decode<Chain>(Nest(Decoder::kMaxDepth)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("deep")));
  EXPECT_THAT(Decode<Chain>(Nest(20000)),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(WireTraitsTest, PrerequisitesAreHandedOverUnlessTheySucceeded) {
  Decoder decoder(nullptr, nullptr, "", {});
  async::Promise<void> pending;
  decoder.AddPrerequisite(pending.future());
  decoder.AddPrerequisite(
      async::MakeReadyFuture<void>(absl::DataLossError("lost")));
  decoder.AddPrerequisite(async::MakeReadyFuture<void>(absl::OkStatus()));
  EXPECT_EQ(decoder.TakePrerequisites().size(), 2u);
}

TEST(WireTraitsTest, LastPrerequisiteStartsAfterTheOthersHaveSucceeded) {
  async::Promise<void> last;
  bool started = false;
  const auto start = [&] {
    started = true;
    return last.future();
  };
  Decoder decoder(nullptr, nullptr, "", {});
  async::Promise<void> first;
  decoder.AddLastPrerequisite(start);
  decoder.AddPrerequisite(first.future());
  const std::vector<async::Future<void>> both = decoder.TakePrerequisites();
  ASSERT_EQ(both.size(), 1u);
  EXPECT_FALSE(started);
  first.Set(absl::OkStatus());
  EXPECT_TRUE(started);
  EXPECT_FALSE(both[0].ready());
  last.Set(absl::OkStatus());
  EXPECT_THAT(both[0].Wait(), IsOk());

  Decoder at_once(nullptr, nullptr, "", {});
  at_once.AddLastPrerequisite(
      [] { return async::MakeReadyFuture<void>(absl::OkStatus()); });
  EXPECT_THAT(at_once.TakePrerequisites(), testing::IsEmpty());

  Decoder failing(nullptr, nullptr, "", {});
  started = false;
  failing.AddLastPrerequisite(start);
  failing.AddPrerequisite(
      async::MakeReadyFuture<void>(absl::DataLossError("lost")));
  const std::vector<async::Future<void>> failed = failing.TakePrerequisites();
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_THAT(failed[0].Wait(), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_FALSE(started);
}

// Mutates valid messages at random: every outcome must be a value or an error.
// Sanitizers find any other.
TEST(WireTraitsTest, HostileBytesGiveStatus) {
  using Everything =
      std::tuple<bool, int32_t, uint64_t, float, std::string,
                 std::vector<int64_t>, std::vector<double>,
                 std::map<std::string, std::vector<std::string>>,
                 std::optional<std::pair<int, int>>, v1::WorkerRecord, Tensor>;
  v1::WorkerRecord record;
  record.set_name("w");
  const Encoded valid = Encode(
      Everything(true, -5, 5, 1.5f, "text", {1, -2}, {0.5}, {{"k", {"a", "b"}}},
                 std::pair(1, 2), record, Tensor::Ones({2})));
  async::RandomSource random(7);
  int accepted = 0;
  for (int i = 0; i < 10000; ++i) {
    Encoded mutated = valid;
    std::string& bytes = mutated.values;
    const int changes = 1 + static_cast<int>(random.Below(4));
    for (int c = 0; c < changes && !bytes.empty(); ++c) {
      const size_t at = random.Below(bytes.size());
      switch (random.Below(4)) {
        case 0:
          bytes[at] = static_cast<char>(random.Below(256));
          break;
        case 1:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.Below(8)));
          break;
        case 2:
          bytes.resize(at);
          break;
        default:
          bytes.insert(at, bytes.substr(random.Below(bytes.size()), 9));
          break;
      }
    }
    Decoder decoder(nullptr, nullptr, bytes, mutated.tensors);
    absl::StatusOr<Everything> value = WireTraits<Everything>::Decode(decoder);
    if (value.ok()) {
      ++accepted;
    } else {
      // The second encodes a protobuf message.
      EXPECT_THAT(value,
                  testing::AnyOf(StatusIs(absl::StatusCode::kInvalidArgument),
                                 StatusIs(absl::StatusCode::kInternal)));
    }
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, 5000);
}

}  // namespace
}  // namespace hawser::rpc

#include "bazel/fuzz/message_maker.h"

#include <cstdint>
#include <string>
#include <vector>

#include "bazel/fuzz/fuzz_input.h"
#include "gtest/gtest.h"
#include "proto/rpc.pb.h"
#include "proto/rref.pb.h"
#include "proto/stream.pb.h"

namespace hawser::fuzz {
namespace {

TEST(FuzzInputTest, ChoicesAfterTheEndAreZero) {
  const std::vector<uint8_t> bytes = {3, 2, 'a'};
  FuzzInput input(bytes.data(), bytes.size());
  EXPECT_EQ(input.Below(2), 1u);
  EXPECT_EQ(input.Bytes(), "a");
  EXPECT_TRUE(input.empty());
  EXPECT_EQ(input.Number(), 0u);
  EXPECT_EQ(input.Bytes(), "");
}

TEST(FuzzInputTest, LargeBytesStandForLimitsAndAnyNumber) {
  const std::vector<uint8_t> bytes = {0xEF, 0xFE, 0xFF, 0, 0, 0, 0, 0, 0, 1, 2};
  FuzzInput input(bytes.data(), bytes.size());
  EXPECT_EQ(input.Number(), 0xEFu);
  EXPECT_EQ(input.Number(), ~uint64_t{0});
  EXPECT_EQ(input.Number(), 0x102u);
}

TEST(MessageMakerTest, NoInputMakesAnEmptyMessage) {
  FuzzInput input(nullptr, 0);
  MessageMaker maker(&input);
  EXPECT_EQ(maker.Make<v1::StreamOpenRequest>().SerializeAsString(), "");
}

TEST(MessageMakerTest, OfferedAndOtherValuesAreChosen) {
  // Of two offered numbers the second, a number of the input, none offered.
  const std::vector<uint8_t> bytes = {1, 2, 7, 9};
  FuzzInput input(bytes.data(), bytes.size());
  MessageMaker maker(&input);
  maker.OfferNumbers("hawser.v1.StreamNextRequest.stream", {50, 60});
  maker.OfferNumbers("hawser.v1.StreamNextRequest.sequence", {70, 80});
  const auto request = maker.Make<v1::StreamNextRequest>();
  EXPECT_EQ(request.stream(), 60u);
  EXPECT_EQ(request.sequence(), 7u);
  EXPECT_EQ(request.acknowledged(), 9u);
  EXPECT_FALSE(request.has_header());
}

TEST(MessageMakerTest, OfferedMessagesAreChosen) {
  v1::GlobalId id;
  id.set_number(5);
  // The fork is set, and is the offered one.
  const std::vector<uint8_t> bytes = {1, 0};
  FuzzInput input(bytes.data(), bytes.size());
  MessageMaker maker(&input);
  maker.Offer(id);
  EXPECT_EQ(maker.Make<v1::ChildAccept>().fork().number(), 5u);
}

TEST(MessageMakerTest, RepeatedFieldsAndChoicesAreFilled) {
  // A list of two values: the third kind, int_value, and the second, a bool.
  const std::vector<uint8_t> bytes = {2, 3, 17, 2, 1};
  FuzzInput input(bytes.data(), bytes.size());
  const auto list = MessageMaker(&input).Make<v1::ValueList>();
  ASSERT_EQ(list.values_size(), 2);
  EXPECT_EQ(list.values(0).int_value(), 17);
  EXPECT_TRUE(list.values(1).bool_value());
}

// The 9th kind of a value is a list of values.
TEST(MessageMakerTest, NestingIsLimited) {
  const std::vector<uint8_t> bytes(100000, 9);
  FuzzInput input(bytes.data(), bytes.size());
  const auto value = MessageMaker(&input).Make<v1::Value>();
  EXPECT_FALSE(input.empty());
  v1::Value again;
  EXPECT_TRUE(again.ParseFromString(value.SerializeAsString()));
}

}  // namespace
}  // namespace hawser::fuzz

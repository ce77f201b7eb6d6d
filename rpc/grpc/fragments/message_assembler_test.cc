#include "rpc/grpc/fragments/message_assembler.h"

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"
#include "proto/fragments.pb.h"
#include "rpc/grpc/fragments/message_fragments.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

constexpr size_t kMaxBytes = size_t{64} << 20;

::grpc::ByteBuffer ToBuffer(const std::string& bytes) {
  const ::grpc::Slice slice(bytes);
  return ::grpc::ByteBuffer(&slice, 1);
}

v1::MessageFragment Fragment(const std::vector<uint64_t>& parts,
                             const std::string& content) {
  v1::MessageFragment fragment;
  for (const uint64_t part : parts) fragment.add_part_bytes(part);
  fragment.set_content(content);
  return fragment;
}

std::string RandomBytes(size_t size) {
  std::mt19937 random(static_cast<uint32_t>(size));
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

class MessageAssemblerTest : public testing::Test {
 protected:
  absl::StatusOr<bool> Add(const std::string& bytes) {
    ::grpc::ByteBuffer buffer = ToBuffer(bytes);
    return assembler_.Add(buffer);
  }
  absl::StatusOr<bool> Add(const v1::MessageFragment& fragment) {
    return Add(fragment.SerializeAsString());
  }

  const std::shared_ptr<AssemblyBudget> budget_ =
      std::make_shared<AssemblyBudget>(kMaxBytes, kMaxBytes);
  MessageAssembler assembler_{kMaxBytes, budget_, "peer"};
};

TEST_F(MessageAssemblerTest, PayloadsOfAnyShapeAreAssembled) {
  const std::vector<std::vector<size_t>> shapes = {
      {1},
      {100, 3'000'000},
      {100, 3'000'000, 5},
      {100, 3'000'000, 5, 7, 11, 262'144, 65'536, 65'535, 1},
      {5'000'001},
      std::vector<size_t>(1000, 1'000),
  };
  for (const std::vector<size_t>& shape : shapes) {
    SCOPED_TRACE(testing::PrintToString(shape));
    Payload payload;
    for (const size_t size : shape) payload.Append(RandomBytes(size));
    const std::string sent = *payload.Flatten();
    MessageFragments fragments(std::move(payload));
    MessageAssembler assembler(kMaxBytes, budget_, "peer");
    bool whole = false;
    while (!fragments.AtEnd()) {
      ASSERT_FALSE(whole);
      ::grpc::ByteBuffer fragment = fragments.Next();
      absl::StatusOr<bool> added = assembler.Add(fragment);
      ASSERT_THAT(added, IsOk());
      whole = *added;
    }
    ASSERT_TRUE(whole);
    const Payload received = assembler.Take();
    EXPECT_TRUE(*received.Flatten() == sent);
  }
}

TEST_F(MessageAssemblerTest, LargeChunksGetMemoryOfTheirOwn) {
  Payload payload;
  for (const size_t size : {10, 20, 100'000, 30, 200'000}) {
    payload.Append(RandomBytes(size));
  }
  MessageFragments fragments(std::move(payload));
  while (!fragments.AtEnd()) {
    ::grpc::ByteBuffer fragment = fragments.Next();
    ASSERT_THAT(assembler_.Add(fragment), IsOk());
  }
  const Payload received = assembler_.Take();
  std::vector<size_t> sizes;
  for (const Payload::Chunk& chunk : received.chunks()) {
    sizes.push_back(chunk.size);
    ASSERT_NE(chunk.storage, nullptr);
    EXPECT_EQ(chunk.storage->bytes(), chunk.size);
    EXPECT_EQ(chunk.storage->data(), chunk.data);
  }
  EXPECT_THAT(sizes, testing::ElementsAre(30, 100'000, 30, 200'000));
}

TEST_F(MessageAssemblerTest, PayloadOfOneFragmentIsCompleteAtOnce) {
  const std::string bytes = RandomBytes(kMaxWholeRequest);
  MessageFragments fragments(Payload(bytes), kMaxWholeRequest);
  ::grpc::ByteBuffer only = fragments.Next();
  EXPECT_TRUE(fragments.AtEnd());
  EXPECT_THAT(assembler_.Add(only), IsOkAndHolds(true));
  EXPECT_TRUE(*assembler_.Take().Flatten() == bytes);
}

TEST_F(MessageAssemblerTest, FragmentsMayBeOfAnySize) {
  const std::string sent = RandomBytes(1000);
  EXPECT_THAT(Add(Fragment({1000}, "")), IsOkAndHolds(false));
  EXPECT_THAT(Add(Fragment({}, sent.substr(0, 1))), IsOkAndHolds(false));
  EXPECT_THAT(Add(""), IsOkAndHolds(false));
  EXPECT_THAT(Add(Fragment({}, sent.substr(1, 998))), IsOkAndHolds(false));
  EXPECT_THAT(Add(Fragment({}, sent.substr(999))), IsOkAndHolds(true));
  EXPECT_THAT(assembler_.Take().Flatten(), IsOkAndHolds(sent));
}

TEST_F(MessageAssemblerTest, MalformedFragmentsAreRefused) {
  const std::vector<std::vector<std::string>> messages = {
      // No sizes; an empty part; two adjacent small parts.
      {Fragment({}, "x").SerializeAsString()},
      {Fragment({0}, "x").SerializeAsString()},
      {Fragment({1, 1}, "xx").SerializeAsString()},
      // More bytes than announced, in the first and in a later fragment.
      {Fragment({1}, "xx").SerializeAsString()},
      {Fragment({2}, "x").SerializeAsString(),
       Fragment({}, "xx").SerializeAsString()},
      // Sizes after the first fragment, and after content.
      {Fragment({2}, "x").SerializeAsString(),
       Fragment({70'000}, "x").SerializeAsString()},
      {Fragment({2}, "x").SerializeAsString() +
       Fragment({70'000}, "").SerializeAsString()},
      // Malformed bytes; a truncated message; an unknown field.
      {"\xff"},
      {std::string("\x12\x05x", 3)},
      {std::string("\x0a\x7f\x01", 3)},
      {std::string("\x1a\x01x", 3)},
      {std::string("\x11\x01x", 3)},
  };
  for (const std::vector<std::string>& message : messages) {
    SCOPED_TRACE(testing::PrintToString(message));
    MessageAssembler assembler(kMaxBytes, budget_, "peer");
    for (size_t i = 0; i < message.size(); ++i) {
      ::grpc::ByteBuffer fragment = ToBuffer(message[i]);
      const absl::StatusOr<bool> added = assembler.Add(fragment);
      if (i + 1 < message.size()) {
        EXPECT_THAT(added, IsOkAndHolds(false));
      } else {
        EXPECT_THAT(added, StatusIs(absl::StatusCode::kInternal,
                                    HasSubstr("proto/fragments.proto")));
      }
    }
  }
}

TEST_F(MessageAssemblerTest, LongMessagesAreRejectedWhenAnnounced) {
  EXPECT_THAT(Add(Fragment({kMaxBytes + 1}, "x")),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("max_message_bytes")));
  MessageAssembler other(kMaxBytes, budget_, "peer");
  ::grpc::ByteBuffer fragment =
      ToBuffer(Fragment({kMaxBytes, UINT64_MAX}, "x").SerializeAsString());
  EXPECT_THAT(other.Add(fragment),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(AssemblyBudgetTest, BytesPerPeerAreLimited) {
  AssemblyBudget budget(100, 60);
  EXPECT_THAT(budget.Reserve("a", 60), IsOk());
  EXPECT_THAT(
      budget.Reserve("a", 1),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("of one peer")));
  EXPECT_THAT(budget.Reserve("b", 40), IsOk());
  EXPECT_THAT(
      budget.Reserve("c", 1),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("together")));
  budget.Release("a", 30);
  EXPECT_THAT(budget.Reserve("a", 31),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(budget.Reserve("b", 20), IsOk());
  EXPECT_THAT(budget.Reserve("a", 10), IsOk());
}

TEST_F(MessageAssemblerTest, MemoryIsTakenOnlyWithinTheBudget) {
  ASSERT_THAT(Add(Fragment({kMaxBytes - 100}, "x")), IsOkAndHolds(false));
  ::grpc::ByteBuffer fragment =
      ToBuffer(Fragment({101}, "x").SerializeAsString());
  {
    MessageAssembler other(kMaxBytes, budget_, "peer");
    EXPECT_THAT(other.Add(fragment),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         HasSubstr("memory_quota_bytes")));
  }
  {
    MessageAssembler other(kMaxBytes, budget_, "peer");
    fragment = ToBuffer(Fragment({100}, "x").SerializeAsString());
    EXPECT_THAT(other.Add(fragment), IsOkAndHolds(false));
    EXPECT_FALSE(budget_->Reserve("another", 1).ok());
  }
  // Released by an incomplete message and by a complete one.
  EXPECT_TRUE(budget_->Reserve("another", 100).ok());
  {
    MessageAssembler other(kMaxBytes, budget_, "peer");
    fragment = ToBuffer(Fragment({1}, "x").SerializeAsString());
    EXPECT_THAT(other.Add(fragment),
                StatusIs(absl::StatusCode::kResourceExhausted));
    budget_->Release("another", 100);
  }
  MessageAssembler other(kMaxBytes, budget_, "peer");
  fragment =
      ToBuffer(Fragment({100}, std::string(100, 'x')).SerializeAsString());
  EXPECT_THAT(other.Add(fragment), IsOkAndHolds(true));
  EXPECT_FALSE(budget_->Reserve("another", 1).ok());
  const Payload payload = other.Take();
  EXPECT_TRUE(budget_->Reserve("another", 100).ok());
}

}  // namespace
}  // namespace hawser::rpc

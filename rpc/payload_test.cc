#include "rpc/payload.h"

#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace hawser::rpc {
namespace {

TEST(PayloadTest, IsTheConcatenationOfItsChunks) {
  Payload payload("ab");
  payload.Append("");
  payload.Append("cde");
  EXPECT_EQ(payload.size(), 5u);
  EXPECT_EQ(payload.chunks().size(), 2u);
  EXPECT_EQ(payload.Flatten(), "abcde");
}

TEST(PayloadTest, KeepsTheOwnersOfItsMemory) {
  auto owner = std::make_shared<const std::string>("text");
  Payload copy;
  {
    Payload payload;
    payload.Append(owner, owner->data(), owner->size());
    EXPECT_EQ(payload.chunks()[0].data, owner->data());
    copy = payload;
    EXPECT_EQ(owner.use_count(), 3);
  }
  EXPECT_EQ(owner.use_count(), 2);
  copy = Payload();
  EXPECT_EQ(owner.use_count(), 1);
}

}  // namespace
}  // namespace hawser::rpc

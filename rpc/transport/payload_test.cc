#include "rpc/transport/payload.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"

namespace hawser::rpc {
namespace {

using async::IsOk;
using async::IsOkAndHolds;
using async::StatusIs;

TEST(PayloadTest, IsTheConcatenationOfItsChunks) {
  Payload payload("ab");
  payload.Append("");
  payload.Append("cde");
  EXPECT_EQ(payload.size(), 5u);
  EXPECT_EQ(payload.chunks().size(), 2u);
  EXPECT_THAT(payload.Flatten(), IsOkAndHolds("abcde"));
}

// Remote bytes that can become unavailable.
class FakeBytes final : public RemoteBytes {
 public:
  explicit FakeBytes(std::string bytes) : bytes_(std::move(bytes)) {}

  absl::Status Fetch(size_t offset, void* to, size_t size) const override {
    if (gone) return absl::UnavailableError("gone");
    std::memcpy(to, bytes_.data() + offset, size);
    return absl::OkStatus();
  }

  bool gone = false;

 private:
  const std::string bytes_;
};

TEST(PayloadTest, FetchesRemoteBytes) {
  auto bytes = std::make_shared<FakeBytes>("cdef");
  Payload payload("ab");
  payload.Append(bytes, 4);
  EXPECT_EQ(payload.size(), 6u);
  EXPECT_EQ(payload.chunks()[1].data, nullptr);
  std::string two(2, '\0');
  EXPECT_THAT(payload.Copy(1, 1, two.data(), 2), IsOk());
  EXPECT_EQ(two, "de");
  EXPECT_THAT(payload.Flatten(), IsOkAndHolds("abcdef"));
  EXPECT_THAT(payload.Fetch(1), IsOk());
  // The bytes are now local.
  bytes->gone = true;
  EXPECT_THAT(payload.Flatten(), IsOkAndHolds("abcdef"));
  EXPECT_EQ(bytes.use_count(), 1);
}

TEST(PayloadTest, UnavailableRemoteBytesAreAnError) {
  auto bytes = std::make_shared<FakeBytes>("cdef");
  bytes->gone = true;
  Payload payload("ab");
  payload.Append(bytes, 4);
  EXPECT_THAT(payload.Flatten(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(payload.Fetch(1), StatusIs(absl::StatusCode::kUnavailable));
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

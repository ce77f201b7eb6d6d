// Replies in the heap of a link.

#include <cstddef>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/same_host/link_memory.h"
#include "rpc/same_host/tests/same_host_test_fixture.h"
#include "rpc/transport/payload.h"
#include "rpc/transport/transport.h"
#include "tensor/memory/storage.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using HeapRepliesTest = SameHostTest;

// Of the memory for replies, which is the heap.
TEST_F(HeapRepliesTest, RepliesInTheHeapAreSentInPlaceAndKeptUntilTheyAreRead) {
  constexpr size_t kBytes = 100'000;
  std::vector<async::Future<Payload>> replies;
  std::vector<const void*> places;
  for (int i = 0; i < 8; ++i) {
    auto promise = std::make_shared<async::Promise<Payload>>();
    replies.push_back(promise->future());
    connection_->Call("/t.T/Hold", Payload("x"), async::kNever,
                      [promise](absl::StatusOr<Payload> reply) {
                        promise->Set(std::move(reply));
                      });
    auto call = TakeHeld();
    EXPECT_EQ(call->AllocateReply(4096), nullptr) << "fits in a frame";
    EXPECT_EQ(call->AllocateReply(size_t{512 << 10} + 1), nullptr);
    tensor::StoragePtr memory = call->AllocateReply(kBytes);
    ASSERT_NE(memory, nullptr);
    places.push_back(memory->data());
    std::memset(memory->data(), 'a' + i, kBytes);
    Payload reply;
    reply.Append(std::make_shared<tensor::StoragePtr>(memory), memory->data(),
                 kBytes);
    call->Reply(std::move(reply));
    // What is written after the reply was sent shows that there is no copy.
    static_cast<char*>(memory->data())[0] = 'z';
  }
  EXPECT_EQ(std::set<const void*>(places.begin(), places.end()).size(), 8u);
  for (int i = 0; i < 8; ++i) {
    std::string expected(kBytes, static_cast<char>('a' + i));
    expected[0] = 'z';
    const absl::StatusOr<Payload> reply =
        replies[static_cast<size_t>(i)].Wait();
    ASSERT_THAT(reply, IsOk());
    EXPECT_THAT(reply->Flatten(), IsOkAndHolds(expected));
  }
  // Once they are read and dropped, their ranges are used again.
  replies.clear();
  std::set<const void*> used(places.begin(), places.end());
  for (int i = 0; i < 100; ++i) {
    auto future = Call("/t.T/Hold", "x");
    auto call = TakeHeld();
    const tensor::StoragePtr memory = call->AllocateReply(kBytes);
    ASSERT_NE(memory, nullptr);
    used.insert(memory->data());
    std::memset(memory->data(), 'r', kBytes);
    Payload reply;
    reply.Append(std::make_shared<tensor::StoragePtr>(memory), memory->data(),
                 kBytes);
    call->Reply(std::move(reply));
    EXPECT_THAT(std::move(future).Wait(),
                IsOkAndHolds(std::string(kBytes, 'r')));
  }
  EXPECT_LT(used.size(), 20u);
}

// The last handle on a reply is that of a request which waits for room in the
// link. Dropping it sends a release through the same link.
TEST_F(HeapRepliesTest, ReplyInPlaceMayBeSentBack) {
  constexpr size_t kBytes = 5000;
  const std::string text(kBytes, 'x');
  tensor::StoragePtr storage;
  {
    auto promise = std::make_shared<async::Promise<Payload>>();
    connection_->Call("/t.T/Echo", Payload(text), async::kNever,
                      [promise](absl::StatusOr<Payload> reply) {
                        promise->Set(std::move(reply));
                      });
    const absl::StatusOr<Payload> reply = promise->future().Wait();
    ASSERT_THAT(reply, IsOk());
    const Payload::Chunk& chunk = reply->chunks()[0];
    ASSERT_NE(chunk.remote, nullptr);
    storage = chunk.remote->InPlace(0, kBytes);
    ASSERT_NE(storage, nullptr);
  }
  // Each call keeps one of the link's slots until it ends.
  std::vector<async::Future<std::string>> held;
  std::vector<std::unique_ptr<IncomingCall>> calls;
  for (size_t i = 0; i < kNumSlots; ++i) {
    held.push_back(Call("/t.T/Hold", text));
    calls.push_back(TakeHeld());
  }
  Payload request;
  const void* const data = storage->data();
  request.Append(std::make_shared<tensor::StoragePtr>(std::move(storage)), data,
                 kBytes);
  auto waiting = Call(*connection_, "/t.T/Echo", std::move(request));
  for (auto& call : calls) call->Reply(Payload("done"));
  EXPECT_THAT(std::move(waiting).Wait(), IsOkAndHolds(text));
  for (auto& call : held) {
    EXPECT_THAT(std::move(call).Wait(), IsOkAndHolds("done"));
  }
}

}  // namespace
}  // namespace hawser::rpc

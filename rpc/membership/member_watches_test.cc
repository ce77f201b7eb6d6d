#include "rpc/membership/member_watches.h"

#include <array>
#include <atomic>
#include <functional>
#include <thread>

#include "absl/synchronization/notification.h"
#include "async/thread_pool.h"
#include "gtest/gtest.h"
#include "rpc/identity/worker_info.h"
#include "rpc/membership/member_event.h"

namespace hawser::rpc {
namespace {

class MemberWatchesTest : public testing::Test {
 protected:
  // Runs both actions during a callback: neither returns before the callback
  // ends.
  void ExpectBothWait(std::array<std::function<void()>, 2> actions) {
    watches_.OnEvent({.kind = MemberEvent::Kind::kJoined,
                      .worker = {"w0", WorkerId(0), Incarnation{1}, ""}});
    begun_.WaitForNotification();
    std::atomic<int> num_returned{0};
    for (auto& action : actions) {
      callers_.Post([&num_returned, &action] {
        action();
        ++num_returned;
      });
    }
    while (num_returned == 0 && callers_.stats().num_blocked < 2) {
      std::this_thread::yield();
    }
    EXPECT_EQ(num_returned, 0);
    end_.Notify();
    callers_.Shutdown();
    EXPECT_EQ(num_returned, 2);
  }

  absl::Notification begun_;
  absl::Notification end_;
  async::ThreadPool callers_{{.num_threads = 2}};
  async::ThreadPool pool_{{.num_threads = 1}};
  MemberWatches watches_{&pool_};
  const MemberWatch watch_ = watches_.Add([this](const MemberEvent&) {
    begun_.Notify();
    end_.WaitForNotification();
  });
};

TEST_F(MemberWatchesTest, EveryRemoveWaitsForTheCallback) {
  ExpectBothWait({[this] { watches_.Remove(watch_); },
                  [this] { watches_.Remove(watch_); }});
}

TEST_F(MemberWatchesTest, RemoveDuringStopWaitsForTheCallback) {
  ExpectBothWait(
      {[this] { watches_.Stop(); }, [this] { watches_.Remove(watch_); }});
}

TEST_F(MemberWatchesTest, SecondStopWaitsForTheCallback) {
  ExpectBothWait({[this] { watches_.Stop(); }, [this] { watches_.Stop(); }});
}

}  // namespace
}  // namespace hawser::rpc

#include "ipc/parallel_copier.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "async/mutex.h"
#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"

namespace hawser::ipc {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;

constexpr size_t kBlock = ParallelCopier::kBlockBytes;
constexpr size_t kMin = ParallelCopier::kMinBytes;

TEST(ParallelCopierTest, EveryByteIsCopiedOnce) {
  ParallelCopier copier;
  for (const size_t size : {size_t{0}, size_t{1}, kMin - 1, kMin, kMin + 1,
                            5 * kMin + kBlock + 7}) {
    std::string from(size, '\0');
    for (size_t i = 0; i < size; ++i) from[i] = static_cast<char>(i * 31);
    std::string to(size, '\0');
    std::atomic<size_t> total = 0;
    EXPECT_THAT(copier.Copy(size,
                            [&](size_t offset, size_t count) {
                              std::memcpy(to.data() + offset,
                                          from.data() + offset, count);
                              total += count;
                              return absl::OkStatus();
                            }),
                IsOk());
    EXPECT_EQ(total, size);
    EXPECT_TRUE(to == from);
  }
}

TEST(ParallelCopierTest, ErrorStopsTheCopy) {
  ParallelCopier copier;
  std::atomic<int> num_blocks = 0;
  EXPECT_THAT(copier.Copy(1000 * kBlock,
                          [&](size_t, size_t) {
                            ++num_blocks;
                            return absl::UnavailableError("gone");
                          }),
              StatusIs(absl::StatusCode::kUnavailable));
  // At most one for each thread.
  EXPECT_LE(num_blocks, 4);
}

// On several cores, several threads copy.
TEST(ParallelCopierTest, HelperThreadsCopy) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one core";
  ParallelCopier copier;
  async::Mutex mutex;
  async::CondVar two;
  int num_inside = 0;
  EXPECT_THAT(copier.Copy(kMin,
                          [&](size_t, size_t) {
                            async::MutexLock lock(&mutex);
                            if (++num_inside == 2) two.NotifyAll();
                            while (num_inside < 2) two.Wait(&mutex);
                            return absl::OkStatus();
                          }),
              IsOk());
}

TEST(ParallelCopierTest, WaitsForBlocksOfHelperThreads) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one core";
  ParallelCopier copier;
  std::promise<void> helping, returned, helped;
  const std::shared_future<void> help = helping.get_future().share();
  std::atomic<bool> is_first{true};
  bool early = false;
  const std::thread::id caller = std::this_thread::get_id();
  const auto copy = [&](size_t, size_t) {
    if (std::this_thread::get_id() == caller) {
      // Waits until another thread has a block.
      help.wait();
    } else if (is_first.exchange(false)) {
      helping.set_value();
      // Long enough for a Copy that does not wait to return.
      early = returned.get_future().wait_for(std::chrono::milliseconds(200)) ==
              std::future_status::ready;
      helped.set_value();
    }
    return absl::OkStatus();
  };
  EXPECT_THAT(copier.Copy(kMin, copy), IsOk());
  returned.set_value();
  helped.get_future().wait();
  EXPECT_FALSE(early);
}

TEST(ParallelCopierTest, CopiesOfSeveralCallersRunAtOnce) {
  ParallelCopier copier;
  std::vector<std::thread> callers;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([&, i] {
      const std::string from(2 * kMin + 1, static_cast<char>('a' + i));
      for (int turn = 0; turn < 5; ++turn) {
        std::string to(from.size(), '\0');
        EXPECT_THAT(copier.Copy(to.size(),
                                [&](size_t offset, size_t count) {
                                  std::memcpy(to.data() + offset,
                                              from.data() + offset, count);
                                  return absl::OkStatus();
                                }),
                    IsOk());
        EXPECT_TRUE(to == from);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

}  // namespace
}  // namespace hawser::ipc

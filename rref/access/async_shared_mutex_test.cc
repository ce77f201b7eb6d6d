#include "rref/access/async_shared_mutex.h"

#include <memory>
#include <optional>
#include <utility>

#include "async/future.h"
#include "gtest/gtest.h"

namespace hawser::rref {
namespace {

AsyncSharedMutex::Holder Take(async::Future<AsyncSharedMutex::Holder> future) {
  EXPECT_TRUE(future.ready());
  return *std::move(future).Wait();
}

TEST(AsyncSharedMutexTest, SharedHoldersDoNotExcludeEachOther) {
  AsyncSharedMutex lock;
  AsyncSharedMutex::Holder a = Take(lock.AcquireShared());
  AsyncSharedMutex::Holder b = Take(lock.AcquireShared());
}

TEST(AsyncSharedMutexTest, ExclusiveHolderWaitsForSharedOnes) {
  AsyncSharedMutex lock;
  AsyncSharedMutex::Holder a = Take(lock.AcquireShared());
  AsyncSharedMutex::Holder b = Take(lock.AcquireShared());
  async::Future<AsyncSharedMutex::Holder> exclusive = lock.AcquireExclusive();
  a.reset();
  EXPECT_FALSE(exclusive.ready());
  b.reset();
  EXPECT_TRUE(exclusive.ready());
}

TEST(AsyncSharedMutexTest, SharedHolderWaitsBehindAnExclusiveOne) {
  AsyncSharedMutex lock;
  AsyncSharedMutex::Holder a = Take(lock.AcquireShared());
  async::Future<AsyncSharedMutex::Holder> exclusive = lock.AcquireExclusive();
  async::Future<AsyncSharedMutex::Holder> late = lock.AcquireShared();
  EXPECT_FALSE(late.ready());
  a.reset();
  AsyncSharedMutex::Holder writer = Take(std::move(exclusive));
  EXPECT_FALSE(late.ready());
  writer.reset();
  EXPECT_TRUE(late.ready());
}

TEST(AsyncSharedMutexTest, CopiesOfAHolderCountOnce) {
  AsyncSharedMutex lock;
  AsyncSharedMutex::Holder a = Take(lock.AcquireShared());
  AsyncSharedMutex::Holder copy = a;
  async::Future<AsyncSharedMutex::Holder> exclusive = lock.AcquireExclusive();
  a.reset();
  EXPECT_FALSE(exclusive.ready());
  copy.reset();
  EXPECT_TRUE(exclusive.ready());
}

TEST(AsyncSharedMutexTest, DroppedFutureReleasesTheLock) {
  AsyncSharedMutex lock;
  AsyncSharedMutex::Holder a = Take(lock.AcquireShared());
  { async::Future<AsyncSharedMutex::Holder> dropped = lock.AcquireExclusive(); }
  a.reset();
  EXPECT_TRUE(lock.AcquireExclusive().ready());
}

TEST(AsyncSharedMutexTest, HolderMayOutliveTheLock) {
  auto lock = std::make_unique<AsyncSharedMutex>();
  AsyncSharedMutex::Holder a = Take(lock->AcquireShared());
  lock.reset();
  a.reset();
}

}  // namespace
}  // namespace hawser::rref

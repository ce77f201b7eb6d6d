#include "rref/value_lock.h"

#include <memory>
#include <optional>
#include <utility>

#include "async/future.h"
#include "gtest/gtest.h"

namespace hawser::rref {
namespace {

ValueLock::Holder Take(async::Future<ValueLock::Holder> future) {
  EXPECT_TRUE(future.ready());
  return *std::move(future).Wait();
}

TEST(ValueLockTest, SharedHoldersDoNotExcludeEachOther) {
  ValueLock lock;
  ValueLock::Holder a = Take(lock.AcquireShared());
  ValueLock::Holder b = Take(lock.AcquireShared());
}

TEST(ValueLockTest, ExclusiveHolderWaitsForSharedOnes) {
  ValueLock lock;
  ValueLock::Holder a = Take(lock.AcquireShared());
  ValueLock::Holder b = Take(lock.AcquireShared());
  async::Future<ValueLock::Holder> exclusive = lock.AcquireExclusive();
  a.reset();
  EXPECT_FALSE(exclusive.ready());
  b.reset();
  EXPECT_TRUE(exclusive.ready());
}

TEST(ValueLockTest, SharedHolderWaitsBehindAnExclusiveOne) {
  ValueLock lock;
  ValueLock::Holder a = Take(lock.AcquireShared());
  async::Future<ValueLock::Holder> exclusive = lock.AcquireExclusive();
  async::Future<ValueLock::Holder> late = lock.AcquireShared();
  EXPECT_FALSE(late.ready());
  a.reset();
  ValueLock::Holder writer = Take(std::move(exclusive));
  EXPECT_FALSE(late.ready());
  writer.reset();
  EXPECT_TRUE(late.ready());
}

TEST(ValueLockTest, CopiesOfAHolderCountOnce) {
  ValueLock lock;
  ValueLock::Holder a = Take(lock.AcquireShared());
  ValueLock::Holder copy = a;
  async::Future<ValueLock::Holder> exclusive = lock.AcquireExclusive();
  a.reset();
  EXPECT_FALSE(exclusive.ready());
  copy.reset();
  EXPECT_TRUE(exclusive.ready());
}

TEST(ValueLockTest, DroppedFutureLetsGo) {
  ValueLock lock;
  ValueLock::Holder a = Take(lock.AcquireShared());
  { async::Future<ValueLock::Holder> dropped = lock.AcquireExclusive(); }
  a.reset();
  EXPECT_TRUE(lock.AcquireExclusive().ready());
}

TEST(ValueLockTest, HolderMayOutliveTheLock) {
  auto lock = std::make_unique<ValueLock>();
  ValueLock::Holder a = Take(lock->AcquireShared());
  lock.reset();
  a.reset();
}

}  // namespace
}  // namespace hawser::rref

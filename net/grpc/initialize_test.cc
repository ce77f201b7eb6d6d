#include "net/grpc/initialize.h"

#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"

namespace hawser::net {
namespace {

// Abseil as Debian builds it would end the process for the second order.
TEST(InitializeTest, LocksAreNotEnteredInTheGraphOfDeadlocks) {
  InitializeGrpc();
  absl::Mutex first;
  absl::Mutex second;
  {
    const absl::MutexLock outer(&first);
    const absl::MutexLock inner(&second);
  }
  const absl::MutexLock outer(&second);
  EXPECT_TRUE(first.TryLock());
  first.Unlock();
  const absl::MutexLock inner(&first);
}

}  // namespace
}  // namespace hawser::net

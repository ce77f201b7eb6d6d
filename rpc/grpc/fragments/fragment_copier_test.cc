#include "rpc/grpc/fragments/fragment_copier.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "async/cpu_relax.h"
#include "async/testing/manual_executor.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"
#include "tensor/device.h"
#include "tensor/memory/storage.h"

namespace hawser::rpc {
namespace {

constexpr size_t kOffset = 100;
constexpr size_t kBytes = 3'000'001;
constexpr char kUntouched = '.';

// Random bytes in slices of many sizes, including empty ones.
class FragmentCopierTest : public testing::Test {
 protected:
  FragmentCopierTest()
      : to_(*tensor::Storage::Allocate(kOffset + kBytes, tensor::kCpu)) {
    std::memset(to_->data(), kUntouched, to_->bytes());
    std::mt19937 random(1);
    while (from_.size() < kBytes) {
      const size_t size = std::min<size_t>(random() % 100'000 * (random() % 3),
                                           kBytes - from_.size());
      std::string slice(size, '\0');
      for (char& byte : slice) byte = static_cast<char>(random());
      slices_.emplace_back(slice);
      from_ += slice;
    }
  }

  std::shared_ptr<FragmentCopy> MakeCopy() {
    return std::make_shared<FragmentCopy>(slices_, to_, kOffset);
  }
  std::string Copied() const {
    return std::string(static_cast<const char*>(to_->data()) + kOffset, kBytes);
  }

  std::vector<::grpc::Slice> slices_;
  std::string from_;
  tensor::StoragePtr to_;
};

TEST_F(FragmentCopierTest, CopiesOnlyToItsRange) {
  MakeCopy()->Finish();
  EXPECT_TRUE(Copied() == from_);
  EXPECT_EQ(std::string(static_cast<const char*>(to_->data()), kOffset),
            std::string(kOffset, kUntouched));
}

TEST_F(FragmentCopierTest, CopiesOnce) {
  const std::shared_ptr<FragmentCopy> copy = MakeCopy();
  copy->Finish();
  std::memset(to_->data(), kUntouched, to_->bytes());
  copy->Finish();
  EXPECT_EQ(Copied(), std::string(kBytes, kUntouched));
}

TEST_F(FragmentCopierTest, DroppedCopyIsNotExecuted) {
  const std::shared_ptr<FragmentCopy> copy = MakeCopy();
  copy->Drop();
  copy->Finish();
  EXPECT_EQ(Copied(), std::string(kBytes, kUntouched));
}

TEST_F(FragmentCopierTest, LimitsConcurrentCopies) {
  async::ManualExecutor executor;
  FragmentCopier copier(executor, 2);
  EXPECT_TRUE(copier.Reserve());
  EXPECT_TRUE(copier.Reserve());
  EXPECT_FALSE(copier.Reserve());
  copier.Begin(MakeCopy());
  EXPECT_FALSE(copier.Reserve());
  executor.RunAll();
  EXPECT_TRUE(Copied() == from_);
  EXPECT_TRUE(copier.Reserve());
  EXPECT_FALSE(copier.Reserve());
}

TEST_F(FragmentCopierTest, FinishWaitsForTheThreadThatCopies) {
  for (int i = 0; i < 50; ++i) {
    std::memset(to_->data(), kUntouched, to_->bytes());
    const std::shared_ptr<FragmentCopy> copy = MakeCopy();
    std::atomic<bool> begun{false};
    std::thread other([&] {
      begun = true;
      copy->Finish();
    });
    while (!begun) async::CpuRelax();
    copy->Finish();
    // Compare from the end, which a copy in progress has not reached yet.
    const std::string_view copied(
        static_cast<const char*>(to_->data()) + kOffset, kBytes);
    const bool equal =
        std::equal(copied.rbegin(), copied.rend(), from_.rbegin());
    other.join();
    ASSERT_TRUE(equal);
  }
}

TEST_F(FragmentCopierTest, CopiesInItsThreads) {
  if (std::thread::hardware_concurrency() == 1) {
    GTEST_SKIP() << "with one core nothing is handed over";
  }
  FragmentCopier copier(1);
  for (int i = 0; i < 100; ++i) {
    while (!copier.Reserve()) async::CpuRelax();
    std::memset(to_->data(), kUntouched, to_->bytes());
    const std::shared_ptr<FragmentCopy> copy = MakeCopy();
    copier.Begin(copy);
    copy->Finish();
    ASSERT_TRUE(Copied() == from_);
  }
}

}  // namespace
}  // namespace hawser::rpc

#include "ipc/byte_ring.h"

#include <sched.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "async/random_source.h"
#include "gtest/gtest.h"

namespace hawser::ipc {
namespace {

constexpr size_t kCapacity = 64 << 10;

// Memory shared by the two ends.
struct Shared {
  RingControl control{};
  std::array<char, kCapacity> bytes;
};

class ByteRingTest : public testing::Test {
 protected:
  const std::unique_ptr<Shared> shared_ = std::make_unique<Shared>();
  RingWriter writer_{&shared_->control, shared_->bytes.data(), kCapacity};
  RingReader reader_{&shared_->control, shared_->bytes.data(), kCapacity};
  std::string frame_;
};

TEST_F(ByteRingTest, FramesArriveInOrder) {
  EXPECT_EQ(reader_.Read(frame_), RingResult::kNothing);
  EXPECT_EQ(writer_.Write("one"), RingResult::kDone);
  EXPECT_EQ(writer_.Write(""), RingResult::kDone);
  EXPECT_EQ(reader_.Read(frame_), RingResult::kDone);
  EXPECT_EQ(frame_, "one");
  EXPECT_EQ(reader_.Read(frame_), RingResult::kDone);
  EXPECT_EQ(frame_, "");
  EXPECT_EQ(reader_.Read(frame_), RingResult::kNothing);
}

TEST_F(ByteRingTest, FullRingRejectsFramesUntilThereIsSpace) {
  const std::string frame(kMaxRingFrame - 8, 'x');
  EXPECT_EQ(writer_.Write(frame), RingResult::kDone);
  EXPECT_EQ(writer_.Write(frame), RingResult::kDone);
  EXPECT_EQ(writer_.Write(frame), RingResult::kNothing);
  EXPECT_EQ(reader_.Read(frame_), RingResult::kDone);
  EXPECT_TRUE(reader_.NeedsSignal());
  EXPECT_FALSE(reader_.NeedsSignal());
  EXPECT_EQ(writer_.Write(frame), RingResult::kDone);
}

TEST_F(ByteRingTest, ReportsWhetherTheWriterWasOnThisCore) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
  const auto move_to = [](int core) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(core, &cores);
    ASSERT_EQ(sched_setaffinity(0, sizeof(cores), &cores), 0);
  };
  EXPECT_FALSE(reader_.WriterOnThisCore());
  for (int writer = 0; writer < CPU_SETSIZE; ++writer) {
    for (int reader = 0; reader < CPU_SETSIZE; ++reader) {
      if (!CPU_ISSET(writer, &all) || !CPU_ISSET(reader, &all)) continue;
      move_to(writer);
      EXPECT_EQ(writer_.Write("a"), RingResult::kDone);
      move_to(reader);
      EXPECT_EQ(reader_.WriterOnThisCore(), reader == writer);
      EXPECT_EQ(reader_.Read(frame_), RingResult::kDone);
    }
  }
  sched_setaffinity(0, sizeof(all), &all);
}

TEST_F(ByteRingTest, SleepingReaderIsSignalledOnce) {
  EXPECT_FALSE(reader_.FallAsleep());
  EXPECT_EQ(writer_.Write("a"), RingResult::kDone);
  EXPECT_TRUE(writer_.NeedsSignal());
  EXPECT_EQ(writer_.Write("b"), RingResult::kDone);
  EXPECT_FALSE(writer_.NeedsSignal());
  // The frame was written before.
  EXPECT_TRUE(reader_.FallAsleep());
  reader_.WakeUp();
  EXPECT_FALSE(writer_.NeedsSignal());
}

TEST_F(ByteRingTest, FramesOfAllSizesPassBetweenThreads) {
  constexpr int kFrames = 20'000;
  const auto frame_of = [](async::RandomSource& random, int i) {
    const size_t size = random.Below(8) == 0 ? random.Below(kMaxRingFrame + 1)
                                             : random.Below(100);
    return std::string(size, static_cast<char>('a' + i % 26));
  };
  std::thread writing([&] {
    async::RandomSource random(1);
    for (int i = 0; i < kFrames; ++i) {
      const std::string frame = frame_of(random, i);
      while (writer_.Write(frame) != RingResult::kDone) {
        std::this_thread::yield();
      }
    }
  });
  async::RandomSource random(1);
  for (int i = 0; i < kFrames; ++i) {
    while (reader_.Read(frame_) == RingResult::kNothing) {
      std::this_thread::yield();
    }
    if (frame_ != frame_of(random, i)) {
      ADD_FAILURE() << "frame " << i;
      break;
    }
  }
  writing.join();
}

// The other process can write any value into the shared memory.
TEST_F(ByteRingTest, ReaderStaysInItsMemoryForAnyContent) {
  async::RandomSource random(7);
  int broken = 0;
  for (int i = 0; i < 20'000; ++i) {
    RingReader reader(&shared_->control, shared_->bytes.data(), kCapacity);
    for (char& byte : shared_->bytes) {
      byte = 0;
      if (&byte - shared_->bytes.data() > 16) break;
      byte = static_cast<char>(random.Below(256));
    }
    shared_->control.written.store(
        random.Below(4) == 0 ? random.Next() : random.Below(2 * kCapacity));
    RingResult result = reader.Read(frame_);
    EXPECT_LE(frame_.size(), kMaxRingFrame);
    broken += result == RingResult::kBroken ? 1 : 0;
  }
  EXPECT_GT(broken, 0);
}

TEST_F(ByteRingTest, ImpossibleWritePositionBreaksTheRing) {
  EXPECT_EQ(writer_.Write("one"), RingResult::kDone);
  EXPECT_EQ(reader_.Read(frame_), RingResult::kDone);
  for (const uint64_t written :
       {uint64_t{1} << 40, uint64_t{0}, uint64_t{8 + 3}}) {
    shared_->control.written.store(written);
    EXPECT_EQ(reader_.Read(frame_), RingResult::kBroken) << written;
  }
}

TEST_F(ByteRingTest, ImpossibleReadPositionBreaksTheRing) {
  const std::string frame(kMaxRingFrame - 8, 'x');
  EXPECT_EQ(writer_.Write(frame), RingResult::kDone);
  EXPECT_EQ(writer_.Write(frame), RingResult::kDone);
  shared_->control.read.store(uint64_t{1} << 40);
  EXPECT_EQ(writer_.Write(frame), RingResult::kBroken);
}

}  // namespace
}  // namespace hawser::ipc

#include "net/server/misuse_detector.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::net {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr size_t kWatermark = size_t{400} << 20;

MisuseDetector::Use Use(std::string connection, int64_t open_calls,
                        int64_t messages = 0, int64_t bytes = 0) {
  return {.calls = {.connection = std::move(connection),
                    .open_calls = open_calls,
                    .messages = messages},
          .bytes = bytes};
}

auto Closes(const std::string& connection, const std::string& reason) {
  return AllOf(Field(&MisuseDetector::Finding::connection, connection),
               Field(&MisuseDetector::Finding::reason, HasSubstr(reason)));
}

class MisuseDetectorTest : public testing::Test {
 protected:
  // A check after the process has grown to `mib`.
  std::vector<MisuseDetector::Finding> Check(
      const std::vector<MisuseDetector::Use>& uses, size_t mib = 1) {
    return detector_.Check(uses, mib << 20);
  }

  MisuseDetector detector_{{.max_calls_per_connection = 256,
                            .memory_watermark_bytes = kWatermark,
                            .max_message_bytes = 64 * kMiB}};
};

TEST_F(MisuseDetectorTest, CallsOfAConnectionAreLimited) {
  EXPECT_THAT(Check({Use("a", 512), Use("b", 513), Use("c", 1000)}),
              ElementsAre(Closes("b", "513 calls"), Closes("c", "1000 calls")));
}

TEST_F(MisuseDetectorTest, HeaviestOfAGrowingProcessIsClosed) {
  EXPECT_THAT(Check({Use("a", 1), Use("b", 1)}, 50), IsEmpty());
  EXPECT_THAT(Check({Use("a", 1, 0, 5 * kMiB), Use("b", 1, 0, 6 * kMiB)}, 200),
              ElementsAre(Closes("b", "6291456 bytes")));
}

TEST_F(MisuseDetectorTest, BytesAreCountedSinceTheLastMessage) {
  EXPECT_THAT(Check({Use("a", 1, 3, 3 * kMiB)}, 50), IsEmpty());
  EXPECT_THAT(Check({Use("a", 1, 3, 5 * kMiB)}, 60), IsEmpty());
  EXPECT_THAT(Check({Use("a", 1, 3, 6 * kMiB)}, 80), IsEmpty());
  // 2 and 1 and 1 MiB without a message.
  EXPECT_THAT(Check({Use("a", 1, 3, 7 * kMiB)}, 200),
              ElementsAre(Closes("a", "4194304 bytes")));
}

TEST_F(MisuseDetectorTest, MessagesExplainTheirBytes) {
  Check({Use("a", 1)}, 50);
  EXPECT_THAT(Check({Use("a", 1, 50, 100 * kMiB)}, 420), IsEmpty());
  EXPECT_THAT(Check({Use("a", 1, 51, 250 * kMiB)}, 520),
              ElementsAre(Closes("a", "155189248 bytes")));
}

// Also if the process does not grow.
TEST_F(MisuseDetectorTest, FramesThatBelongToNoMessageAreLimited) {
  EXPECT_THAT(Check({Use("a", 1, 5, 100 * kMiB), Use("b", 1, 0, 100 * kMiB)}),
              IsEmpty());
  EXPECT_THAT(Check({Use("a", 1, 6, 220 * kMiB), Use("b", 1, 0, 150 * kMiB)}),
              IsEmpty());
  EXPECT_THAT(Check({Use("a", 1, 6, 324 * kMiB), Use("b", 1, 0, 161 * kMiB)}),
              ElementsAre(Closes("b", "168820736 bytes")));
  // 64 MiB of the 120 when its last message ended, and all later ones.
  EXPECT_THAT(Check({Use("a", 1, 6, 325 * kMiB)}),
              ElementsAre(Closes("a", "168820736 bytes")));
}

// However many bytes arrive between two checks, which may be late.
TEST_F(MisuseDetectorTest, AFastConnectionIsNotClosed) {
  EXPECT_THAT(Check({Use("a", 9, 1, 1 * kMiB)}), IsEmpty());
  EXPECT_THAT(Check({Use("a", 9, 501, 900 * kMiB)}), IsEmpty());
  EXPECT_THAT(Check({Use("a", 9, 521, 2180 * kMiB)}), IsEmpty());
}

TEST_F(MisuseDetectorTest, EndOfAHeavyConnectionIsReported) {
  Check({Use("a", 1, 0, 4 * kMiB), Use("b", 1, 0, 3 * kMiB)});
  EXPECT_FALSE(detector_.heavy_connection_ended());
  Check({Use("a", 1, 0, 4 * kMiB)});
  EXPECT_FALSE(detector_.heavy_connection_ended());
  Check({});
  EXPECT_TRUE(detector_.heavy_connection_ended());
  Check({});
  EXPECT_FALSE(detector_.heavy_connection_ended());
}

TEST_F(MisuseDetectorTest, NewConnectionOfTheSamePortBeginsAnew) {
  Check({Use("a", 1, 100, 20 * kMiB)}, 50);
  EXPECT_THAT(Check({Use("a", 1, 0, kMiB / 2)}, 200), IsEmpty());
  EXPECT_THAT(Check({Use("a", 1, 0, 5 * kMiB)}, 300),
              ElementsAre(Closes("a", "5242880 bytes")));
}

TEST_F(MisuseDetectorTest, GrowthByMessagesIsAllowedBelowTheWatermark) {
  Check({Use("a", 1)}, 10);
  // Twice what was received.
  EXPECT_THAT(Check({Use("a", 1, 0, 40 * kMiB)}, 90), IsEmpty());
}

TEST_F(MisuseDetectorTest, AmplifiedGrowthIsNotAllowedAboveAnEighth) {
  Check({Use("a", 1), Use("b", 1)}, 10);
  // Eight times what was received.
  EXPECT_THAT(Check({Use("a", 1, 0, 5 * kMiB), Use("b", 1, 0, 1 * kMiB)}, 58),
              ElementsAre(Closes("a", "5242880 bytes")));
}

TEST_F(MisuseDetectorTest, AConnectionWithoutAMessageIsClosedSooner) {
  Check({Use("a", 1), Use("b", 1)}, 10);
  EXPECT_THAT(Check({Use("a", 1, 0, 2 * kMiB), Use("b", 1, 1, 4 * kMiB)}, 60),
              ElementsAre(Closes("a", "2097152 bytes")));
  // What it sends explains the growth.
  Check({Use("c", 1)}, 450);
  EXPECT_THAT(Check({Use("c", 1, 0, 3 * kMiB)}, 470), IsEmpty());
}

TEST_F(MisuseDetectorTest, SmallProcessClosesNothing) {
  Check({Use("a", 1)}, 1);
  EXPECT_THAT(Check({Use("a", 1, 0, 4 * kMiB)}, 33), IsEmpty());
}

TEST_F(MisuseDetectorTest, LargeProcessThatDoesNotGrowClosesNothing) {
  Check({Use("a", 1)}, 500);
  EXPECT_THAT(Check({Use("a", 1, 0, 50 * kMiB)}, 515), IsEmpty());
}

}  // namespace
}  // namespace hawser::net

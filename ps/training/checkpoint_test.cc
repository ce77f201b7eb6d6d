#include "ps/training/checkpoint.h"

#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::ps {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

TEST(CheckpointTest, TheLastOneIsRead) {
  const std::string directory = testing::TempDir();
  for (int64_t epochs = 1; epochs <= 2; ++epochs) {
    const Checkpoint checkpoint = {.snapshot = absl::StrCat("epoch-", epochs),
                                   .epochs = epochs,
                                   .samples = epochs << 40};
    ASSERT_THAT(WriteCheckpoint(directory, checkpoint), IsOk());
    EXPECT_THAT(ReadCheckpoint(directory), IsOkAndHolds(checkpoint));
  }
}

TEST(CheckpointTest, WithoutAFileThereIsNone) {
  EXPECT_THAT(ReadCheckpoint("/no/such/directory"),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("/no/such/directory/checkpoint.json")));
}

TEST(CheckpointTest, DamagedFilesAreRefused) {
  const std::string path = absl::StrCat(testing::TempDir(), "/checkpoint.json");
  for (const char* text :
       {"", "{", "[]", "{\"snapshot\":\"a\",\"epochs\":1}",
        "{\"snapshot\":1,\"epochs\":1,\"samples\":1}",
        "{\"snapshot\":\"a\",\"epochs\":-1,\"samples\":1}",
        "{\"snapshot\":\"a\",\"epochs\":1.5,\"samples\":1}",
        "{\"snapshot\":\"a\",\"epochs\":1,\"samples\":18446744073709551615}"}) {
    std::ofstream(path) << text;
    EXPECT_THAT(ReadCheckpoint(testing::TempDir()),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path)))
        << text;
  }
}

}  // namespace
}  // namespace hawser::ps

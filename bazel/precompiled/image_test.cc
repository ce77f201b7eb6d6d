// gcc says nothing when it refuses an image, and parses the headers instead.
// The option -Winvalid-pch tells why it does.

#include "bazel/precompiled/system_image.h"
#include "gtest/gtest.h"

namespace hawser::precompiled {
namespace {

// Images are made by and for gcc.
#ifdef __clang__
constexpr bool kExpected = false;
#else
constexpr bool kExpected = HAWSER_IMAGES_ENABLED;
#endif

TEST(ImageTest, SourcesLoadTheImageOfTheSystemsHeaders) {
  EXPECT_EQ(LoadsSystemImage(), kExpected);
}

TEST(ImageTest, TestsLoadTheImageWithGoogleTest) {
#ifdef HAWSER_BAZEL_PRECOMPILED_TEST_HEADERS_H_
  constexpr bool kLoaded = true;
#else
  constexpr bool kLoaded = false;
#endif
  EXPECT_EQ(kLoaded, kExpected);
}

}  // namespace
}  // namespace hawser::precompiled

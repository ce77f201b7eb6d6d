// The image of the system's headers, as the sources of a test see it.

#ifndef HAWSER_BAZEL_PRECOMPILED_SYSTEM_IMAGE_H_
#define HAWSER_BAZEL_PRECOMPILED_SYSTEM_IMAGE_H_

namespace hawser::precompiled {

// Whether the source of this function was compiled with the image, as those
// that depend on Abseil and not on GoogleTest.
bool LoadsSystemImage();

}  // namespace hawser::precompiled

#endif  // HAWSER_BAZEL_PRECOMPILED_SYSTEM_IMAGE_H_

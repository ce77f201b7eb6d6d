#include "bazel/precompiled/system_image.h"

namespace hawser::precompiled {

bool LoadsSystemImage() {
#ifdef HAWSER_BAZEL_PRECOMPILED_SYSTEM_HEADERS_H_
  return true;
#else
  return false;
#endif
}

}  // namespace hawser::precompiled

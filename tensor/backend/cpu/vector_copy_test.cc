#include "tensor/backend/cpu/vector_copy.h"

#include <cstddef>
#include <string>

#include "gtest/gtest.h"

namespace hawser::tensor::cpu {
namespace {

TEST(StreamCopyTest, CopiesExactlyTheGivenBytes) {
  std::string from(1000, '\0');
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<char>(i * 7);
  for (const size_t size : {0, 1, 15, 63, 64, 65, 127, 128, 500, 777}) {
    for (const size_t from_offset : {0, 1, 17}) {
      for (size_t to_offset = 0; to_offset < 66; ++to_offset) {
        std::string to(1000, 'x');
        std::string expected = to;
        expected.replace(to_offset, size, from, from_offset, size);
        StreamCopy(to.data() + to_offset, from.data() + from_offset, size);
        ASSERT_EQ(to, expected)
            << size << " bytes, from " << from_offset << " to " << to_offset;
      }
    }
  }
}

}  // namespace
}  // namespace hawser::tensor::cpu

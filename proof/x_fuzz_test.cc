#include <cstddef>
#include <cstdint>

#include "proof/greeter.pb.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  hawser::proof::Hello hello;
  hello.ParseFromArray(data, static_cast<int>(bytes));
  return 0;
}

// Fuzz test: arbitrary bytes as the fragments of a request.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "async/check.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "rpc/grpc/fragments/message_assembler.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kMaxBytes = size_t{1} << 20;
  const auto budget =
      std::make_shared<hawser::rpc::AssemblyBudget>(kMaxBytes, kMaxBytes);
  {
    hawser::rpc::MessageAssembler assembler(kMaxBytes, budget, "peer");
    bool going_on = true;
    while (going_on && size > 0) {
      // Each fragment is preceded by its length in one byte, and split into two
      // slices.
      const size_t length = std::min<size_t>(data[0], size - 1);
      const size_t half = length / 2;
      const ::grpc::Slice slices[] = {
          ::grpc::Slice(data + 1, half),
          ::grpc::Slice(data + 1 + half, length - half)};
      data += 1 + length;
      size -= 1 + length;
      ::grpc::ByteBuffer fragment(slices, 2);
      const absl::StatusOr<bool> whole = assembler.Add(fragment);
      HAWSER_CHECK(assembler.received_bytes() <= assembler.total_bytes() &&
                   assembler.total_bytes() <= kMaxBytes);
      if (whole.ok() && *whole) {
        HAWSER_CHECK(assembler.Take().size() == assembler.total_bytes());
      }
      going_on = whole.ok() && !*whole;
    }
  }
  HAWSER_CHECK(budget->Reserve("peer", kMaxBytes).ok()) << "budget was lost";
  return 0;
}

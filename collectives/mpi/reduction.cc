#include "collectives/mpi/reduction.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "async/status_macros.h"
#include "collectives/mpi/mpi_thread.h"
#include "collectives/reduce_elements.h"
#include "tensor/dtype.h"

namespace hawser::collectives {
namespace {

constexpr int kNumReductions = tensor::kNumDTypes * kNumReduceOps;

Reduction ReductionOf(int index) {
  const auto op = static_cast<ReduceOp>(index % kNumReduceOps);
  return {.dtype = static_cast<tensor::DType>(index / kNumReduceOps),
          .op = op == ReduceOp::kAverage ? ReduceOp::kSum : op};
}

// MPI_User_function, which has no closure: one for each reduction.
template <int kIndex>
void Combine(void* in, void* in_out, int* length, MPI_Datatype* /*type*/) {
  const Reduction reduction = ReductionOf(kIndex);
  const auto* const first = static_cast<const std::byte*>(in);
  auto* const second = static_cast<std::byte*>(in_out);
  const std::byte* const sources[] = {first, second};
  ReduceElements(reduction, sources, second,
                 static_cast<size_t>(*length) *
                     static_cast<size_t>(tensor::ItemBytes(reduction.dtype)));
}

template <int... kIndices>
constexpr std::array<MPI_User_function*, kNumReductions> AllFunctions(
    std::integer_sequence<int, kIndices...>) {
  return {Combine<kIndices>...};
}
constexpr auto kFunctions =
    AllFunctions(std::make_integer_sequence<int, kNumReductions>());

struct Handles {
  std::array<MPI_Op, kNumReductions> ops = {};
  // By the bytes of an element.
  std::array<MPI_Datatype, 9> types = {};
};

absl::StatusOr<Handles> MakeHandles() {
  Handles handles;
  for (size_t i = 0; i < kFunctions.size(); ++i) {
    RETURN_IF_ERROR(
        MpiStatus(MPI_Op_create(kFunctions[i], /*commute=*/1, &handles.ops[i]),
                  "MPI_Op_create"));
  }
  for (const int bytes : {1, 2, 4, 8}) {
    MPI_Datatype& type = handles.types[static_cast<size_t>(bytes)];
    RETURN_IF_ERROR(MpiStatus(MPI_Type_contiguous(bytes, MPI_BYTE, &type),
                              "MPI_Type_contiguous"));
    RETURN_IF_ERROR(MpiStatus(MPI_Type_commit(&type), "MPI_Type_commit"));
  }
  return handles;
}

}  // namespace

absl::StatusOr<MpiReduction> MpiReduction::Get(const Reduction& reduction) {
  static const auto* const handles = new absl::StatusOr<Handles>(MakeHandles());
  RETURN_IF_ERROR(handles->status());
  const auto index = static_cast<size_t>(reduction.dtype) * kNumReduceOps +
                     static_cast<size_t>(reduction.op);
  const auto bytes = static_cast<size_t>(tensor::ItemBytes(reduction.dtype));
  return MpiReduction((*handles)->ops[index], (*handles)->types[bytes]);
}

void FinishAverage(const Reduction& reduction, int size, std::byte* data,
                   size_t bytes) {
  if (reduction.op != ReduceOp::kAverage) return;
  // The average of a sum and zeros is what is wanted, rounded as the other
  // backends do. A block of zeros stays in the first cache.
  constexpr size_t kBlock = 4096;
  alignas(64) static constexpr std::byte kZeros[kBlock] = {};
  std::vector<const std::byte*> sources(static_cast<size_t>(size), kZeros);
  for (size_t begin = 0; begin < bytes; begin += kBlock) {
    sources[0] = data + begin;
    ReduceElements(reduction, sources, data + begin,
                   std::min(kBlock, bytes - begin));
  }
}

}  // namespace hawser::collectives

// A call of a collective, apart from the group that runs it.

#ifndef HAWSER_COLLECTIVES_COLLECTIVE_CALL_H_
#define HAWSER_COLLECTIVES_COLLECTIVE_CALL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "async/clock.h"
#include "collectives/backend.h"
#include "collectives/reduce_op.h"
#include "tensor/tensor.h"

namespace hawser::collectives {

enum class CollectiveKind : uint8_t {
  kBarrier,
  kBroadcast,
  kAllReduce,
  kReduce,
  kAllGather,
  kGather,
  kScatter,
  kReduceScatter,
  kAllToAll,
};

// "all-reduce".
std::string_view CollectiveName(CollectiveKind kind);

struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::kBarrier;
  // Broadcast, all-reduce and reduce have outputs only, which are inputs too.
  std::vector<tensor::Tensor> inputs = {};
  // As many as ranks, or one whose equal parts are meant.
  std::vector<tensor::Tensor> outputs = {};
  ReduceOp op = ReduceOp::kSum;
  int root = 0;
  // Where the device has written the operands; null: where it is when the call
  // runs.
  std::shared_ptr<const Backend::Mark> written = nullptr;
};

// kInvalidArgument: this rank cannot make the call; says why.
absl::Status CheckCall(const CollectiveCall& call, int rank, int size,
                       Backend& backend);

// The backend for the tensors of a call that was checked.
Backend& BackendOf(const CollectiveCall& call, Backend& backend);

// Sets `written`, if the call runs on the memory of its tensors.
void MarkOperands(CollectiveCall& call, Backend& backend);

// kInvalidArgument: the backend does not serve the device of the tensor.
absl::Status CheckDevice(const tensor::Tensor& tensor, Backend& backend);

// Same on all ranks that make the same call: "all-reduce of f32[8] by sum".
std::string DescribeCall(const CollectiveCall& call);

// Runs a call that was checked.
absl::Status RunCall(const CollectiveCall& call, int rank, int size,
                     Backend& backend, async::MonotonicTime deadline);

// The memory of contiguous tensors.
ConstBytes BytesOf(const tensor::Tensor& tensor);
MutableBytes MutableBytesOf(tensor::Tensor& tensor);

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_COLLECTIVE_CALL_H_

#include "collectives/collective_call.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "tensor/device.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::collectives {
namespace {

using tensor::Tensor;

std::string ToText(const Tensor& tensor) {
  return absl::StrCat(std::string(tensor::DTypeName(tensor.dtype())),
                      tensor.shape().ToString());
}

bool HasRoot(CollectiveKind kind) {
  return kind == CollectiveKind::kBroadcast ||
         kind == CollectiveKind::kReduce || kind == CollectiveKind::kGather ||
         kind == CollectiveKind::kScatter;
}

bool Reduces(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce ||
         kind == CollectiveKind::kReduce ||
         kind == CollectiveKind::kReduceScatter;
}

absl::Status Invalid(const CollectiveCall& call, const std::string& reason) {
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(CollectiveName(call.kind)), ": ", reason));
}

// All tensors of a call have one dtype and one device.
absl::Status CheckTensors(const CollectiveCall& call, Backend& backend) {
  const Tensor* first = nullptr;
  for (const auto* tensors : {&call.inputs, &call.outputs}) {
    for (const Tensor& each : *tensors) {
      if (!each.defined()) return Invalid(call, "a tensor is undefined");
      if (first == nullptr) {
        first = &each;
        if (absl::Status status = CheckDevice(each, backend); !status.ok()) {
          return Invalid(call, std::string(status.message()));
        }
      }
      if (!(each.device() == first->device())) {
        return Invalid(
            call, absl::StrCat("one tensor is on ", first->device().ToString(),
                               ", another on ", each.device().ToString()));
      }
      if (each.dtype() != first->dtype()) {
        return Invalid(call,
                       absl::StrCat("the tensors ", ToText(*first), " and ",
                                    ToText(each), " differ in dtype"));
      }
    }
  }
  return absl::OkStatus();
}

// `many` are as many tensors as ranks of the shape of `one`, or a tensor with
// as many times its elements.
absl::Status CheckParts(const CollectiveCall& call, const Tensor& one,
                        const std::vector<Tensor>& many, const char* what,
                        int size) {
  if (many.size() == 1 && size > 1) {
    if (many[0].num_elements() == size * one.num_elements()) {
      return absl::OkStatus();
    }
    return Invalid(call, absl::StrCat("the ", what, " ", ToText(many[0]),
                                      " does not have ", size,
                                      " times the elements of ", ToText(one)));
  }
  if (many.size() != static_cast<size_t>(size)) {
    return Invalid(call, absl::StrCat("there are ", many.size(), " ", what,
                                      "s for ", size, " ranks"));
  }
  for (const Tensor& each : many) {
    if (each.num_elements() == one.num_elements()) continue;
    return Invalid(call, absl::StrCat("the ", what, " ", ToText(each),
                                      " differs in size from ", ToText(one)));
  }
  return absl::OkStatus();
}

absl::Status CheckAbsent(const CollectiveCall& call,
                         const std::vector<Tensor>& tensors, const char* what) {
  if (tensors.empty()) return absl::OkStatus();
  return Invalid(call, absl::StrCat("only the root, rank ", call.root, ", has ",
                                    what, "s"));
}

absl::Status CheckCount(const CollectiveCall& call, size_t count, size_t wanted,
                        const char* what) {
  if (count == wanted) return absl::OkStatus();
  return Invalid(call, absl::StrCat("there are ", count, " ", what,
                                    "s instead of ", wanted));
}

// Contiguous memory for tensors that may not be contiguous.
class Staged {
 public:
  // `copies`: the memory begins with the elements of the tensor.
  static absl::StatusOr<Staged> Make(const std::vector<Tensor>& tensors,
                                     bool copies) {
    Staged staged;
    for (const Tensor& each : tensors) {
      if (each.is_contiguous()) {
        staged.memory_.push_back(each);
      } else if (copies) {
        ASSIGN_OR_RETURN(Tensor copy, each.Contiguous());
        staged.memory_.push_back(std::move(copy));
      } else {
        ASSIGN_OR_RETURN(
            Tensor copy,
            Tensor::TryEmpty(each.shape(),
                             {.dtype = each.dtype(), .device = each.device()}));
        staged.memory_.push_back(std::move(copy));
      }
    }
    return staged;
  }

  // One part for each tensor, or for one tensor `parts` parts.
  std::vector<MutableBytes> Parts(size_t parts) {
    std::vector<MutableBytes> bytes;
    if (memory_.size() != 1) {
      for (Tensor& each : memory_) bytes.push_back(MutableBytesOf(each));
      return bytes;
    }
    const MutableBytes whole = MutableBytesOf(memory_[0]);
    const size_t part = whole.size() / parts;
    for (size_t i = 0; i < parts; ++i) {
      bytes.push_back(whole.subspan(i * part, part));
    }
    return bytes;
  }

  // Writes the elements back.
  absl::Status Unstage(const std::vector<Tensor>& tensors) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      Tensor target = tensors[i];
      if (memory_[i].is_same(target)) {
        target.BumpVersion();
      } else {
        RETURN_IF_ERROR(target.CopyFrom(memory_[i]));
      }
    }
    return absl::OkStatus();
  }

 private:
  std::vector<Tensor> memory_;
};

std::vector<ConstBytes> ToConst(const std::vector<MutableBytes>& parts) {
  return {parts.begin(), parts.end()};
}

// Runs the call on contiguous memory.
absl::Status Transfer(const CollectiveCall& call,
                      const std::vector<MutableBytes>& inputs,
                      const std::vector<MutableBytes>& outputs,
                      const Reduction& reduction, bool is_root,
                      Backend& backend, async::MonotonicTime deadline) {
  switch (call.kind) {
    case CollectiveKind::kBarrier:
      return backend.Barrier(deadline);
    case CollectiveKind::kBroadcast:
      return backend.Broadcast(outputs[0], call.root, deadline);
    case CollectiveKind::kAllReduce:
      return backend.AllReduce(outputs, reduction, deadline);
    case CollectiveKind::kReduce:
      return backend.Reduce(outputs[0], is_root ? outputs[0] : MutableBytes(),
                            reduction, call.root, deadline);
    case CollectiveKind::kAllGather:
      return backend.AllGather(inputs[0], outputs, deadline);
    case CollectiveKind::kGather:
      return backend.Gather(inputs[0], outputs, call.root, deadline);
    case CollectiveKind::kScatter:
      return backend.Scatter(ToConst(inputs), outputs[0], call.root, deadline);
    case CollectiveKind::kReduceScatter:
      return backend.ReduceScatter(ToConst(inputs), outputs[0], reduction,
                                   deadline);
    case CollectiveKind::kAllToAll:
      return backend.AllToAll(ToConst(inputs), outputs, deadline);
  }
  std::abort();
}

}  // namespace

ConstBytes BytesOf(const Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.raw_data()),
          static_cast<size_t>(tensor.byte_size())};
}

MutableBytes MutableBytesOf(Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.raw_data()),
          static_cast<size_t>(tensor.byte_size())};
}

std::string_view CollectiveName(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kBarrier:
      return "barrier";
    case CollectiveKind::kBroadcast:
      return "broadcast";
    case CollectiveKind::kAllReduce:
      return "all-reduce";
    case CollectiveKind::kReduce:
      return "reduce";
    case CollectiveKind::kAllGather:
      return "all-gather";
    case CollectiveKind::kGather:
      return "gather";
    case CollectiveKind::kScatter:
      return "scatter";
    case CollectiveKind::kReduceScatter:
      return "reduce-scatter";
    case CollectiveKind::kAllToAll:
      return "all-to-all";
  }
  std::abort();
}

absl::Status CheckDevice(const Tensor& tensor, Backend& backend) {
  if (backend.ForDevice(tensor.device()) != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the tensor ", tensor.ToString(),
                   " is on a device that a group with backend ",
                   std::string(backend.name()), " does not serve"));
}

Backend& BackendOf(const CollectiveCall& call, Backend& backend) {
  const std::vector<Tensor>& tensors =
      call.outputs.empty() ? call.inputs : call.outputs;
  return *backend.ForDevice(tensors.empty() ? tensor::kCpu
                                            : tensors[0].device());
}

void MarkOperands(CollectiveCall& call, Backend& backend) {
  for (const auto* tensors : {&call.inputs, &call.outputs}) {
    for (const Tensor& each : *tensors) {
      // Its copy is made by the call.
      if (!each.is_contiguous()) return;
    }
  }
  call.written = BackendOf(call, backend).MarkEnqueued();
}

absl::Status CheckCall(const CollectiveCall& call, int rank, int size,
                       Backend& backend) {
  if (HasRoot(call.kind) && (call.root < 0 || call.root >= size)) {
    return Invalid(call, absl::StrCat("there is no root rank ", call.root,
                                      " in a group of ", size));
  }
  const bool is_root = rank == call.root;
  RETURN_IF_ERROR(CheckTensors(call, backend));
  switch (call.kind) {
    case CollectiveKind::kBarrier:
      break;
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kReduce:
      RETURN_IF_ERROR(CheckCount(call, call.outputs.size(), 1, "tensor"));
      break;
    case CollectiveKind::kAllReduce:
      if (call.outputs.empty()) return Invalid(call, "there is no tensor");
      break;
    case CollectiveKind::kAllGather:
      RETURN_IF_ERROR(CheckCount(call, call.inputs.size(), 1, "input"));
      RETURN_IF_ERROR(
          CheckParts(call, call.inputs[0], call.outputs, "output", size));
      break;
    case CollectiveKind::kGather:
      RETURN_IF_ERROR(CheckCount(call, call.inputs.size(), 1, "input"));
      RETURN_IF_ERROR(is_root ? CheckParts(call, call.inputs[0], call.outputs,
                                           "output", size)
                              : CheckAbsent(call, call.outputs, "output"));
      break;
    case CollectiveKind::kScatter:
      RETURN_IF_ERROR(CheckCount(call, call.outputs.size(), 1, "output"));
      RETURN_IF_ERROR(is_root ? CheckParts(call, call.outputs[0], call.inputs,
                                           "input", size)
                              : CheckAbsent(call, call.inputs, "input"));
      break;
    case CollectiveKind::kReduceScatter:
      RETURN_IF_ERROR(CheckCount(call, call.outputs.size(), 1, "output"));
      RETURN_IF_ERROR(
          CheckParts(call, call.outputs[0], call.inputs, "input", size));
      break;
    case CollectiveKind::kAllToAll: {
      const auto ranks = static_cast<size_t>(size);
      RETURN_IF_ERROR(CheckCount(call, call.inputs.size(), ranks, "input"));
      RETURN_IF_ERROR(CheckCount(call, call.outputs.size(), ranks, "output"));
      break;
    }
  }
  if (!Reduces(call.kind)) return absl::OkStatus();
  return CheckReduction({.dtype = call.outputs[0].dtype(), .op = call.op});
}

std::string DescribeCall(const CollectiveCall& call) {
  std::string text(CollectiveName(call.kind));
  switch (call.kind) {
    case CollectiveKind::kBarrier:
      break;
    case CollectiveKind::kAllGather:
    case CollectiveKind::kGather:
      absl::StrAppend(&text, " of ", ToText(call.inputs[0]));
      break;
    case CollectiveKind::kAllToAll:
      // Sizes differ.
      absl::StrAppend(&text, " of ",
                      std::string(tensor::DTypeName(call.outputs[0].dtype())));
      break;
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kReduce:
    case CollectiveKind::kScatter:
    case CollectiveKind::kReduceScatter:
      absl::StrAppend(&text, " of ", ToText(call.outputs[0]));
      if (call.outputs.size() > 1) {
        int64_t elements = 0;
        for (const Tensor& each : call.outputs) elements += each.num_elements();
        absl::StrAppend(&text, " and ", call.outputs.size() - 1,
                        " others, together ", elements, " elements,");
      }
      break;
  }
  if (Reduces(call.kind)) {
    absl::StrAppend(&text, " by ", std::string(ReduceOpName(call.op)));
  }
  if (HasRoot(call.kind)) absl::StrAppend(&text, " with root ", call.root);
  return text;
}

absl::Status RunCall(const CollectiveCall& call, int rank, int size,
                     Backend& backend, async::MonotonicTime deadline) {
  const bool in_place = call.kind == CollectiveKind::kBroadcast ||
                        call.kind == CollectiveKind::kAllReduce ||
                        call.kind == CollectiveKind::kReduce;
  ASSIGN_OR_RETURN(Staged inputs, Staged::Make(call.inputs, /*copies=*/true));
  ASSIGN_OR_RETURN(Staged outputs, Staged::Make(call.outputs, in_place));
  const auto ranks = static_cast<size_t>(size);
  const bool splits_inputs = call.kind == CollectiveKind::kScatter ||
                             call.kind == CollectiveKind::kReduceScatter;
  const bool splits_outputs = call.kind == CollectiveKind::kAllGather ||
                              call.kind == CollectiveKind::kGather;
  Reduction reduction;
  if (Reduces(call.kind)) {
    reduction = {.dtype = call.outputs[0].dtype(), .op = call.op};
  }
  Backend& on_device = BackendOf(call, backend);
  if (call.written != nullptr) on_device.StartAfter(call.written);
  RETURN_IF_ERROR(Transfer(call, inputs.Parts(splits_inputs ? ranks : 1),
                           outputs.Parts(splits_outputs ? ranks : 1), reduction,
                           rank == call.root, on_device, deadline));
  return outputs.Unstage(call.outputs);
}

}  // namespace hawser::collectives

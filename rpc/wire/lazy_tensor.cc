#include "rpc/wire/lazy_tensor.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"

namespace hawser::rpc {

absl::StatusOr<tensor::Tensor> LazyTensor::Read() const {
  return message_->ReadTensor(index_, *counters_);
}

absl::Status LazyTensor::ReadInto(size_t offset,
                                  std::span<std::byte> memory) const {
  if (offset > bytes() || memory.size() > bytes() - offset) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read ", memory.size(), " bytes from byte ", offset,
                     " on of a tensor of ", bytes(), " bytes"));
  }
  RETURN_IF_ERROR(message_->CopyTensor(index_, offset, memory));
  if (wire_.dtype == tensor::DType::kBool) tensor::NormalizeBools(memory);
  counters_->AddReceived(memory.size());
  counters_->AddCopiedToReceive(memory.size());
  return absl::OkStatus();
}

absl::Status LazyTensor::ReadInto(std::span<std::byte> memory) const {
  if (memory.size() != bytes()) {
    return absl::InvalidArgumentError(absl::StrCat("cannot read a tensor of ",
                                                   bytes(), " bytes into ",
                                                   memory.size(), " bytes"));
  }
  return ReadInto(0, memory);
}

std::span<const std::byte> LazyTensor::ReadInPlace(size_t offset,
                                                   size_t size) const {
  // Bools may be any number until they are normalized.
  if (size == 0 || offset > bytes() || size > bytes() - offset ||
      wire_.dtype == tensor::DType::kBool) {
    return {};
  }
  const std::span<const std::byte> elements =
      message_->TensorInPlace(index_, offset, size);
  const auto alignment = static_cast<uintptr_t>(tensor::ItemBytes(wire_.dtype));
  if (reinterpret_cast<uintptr_t>(elements.data()) % alignment != 0) return {};
  counters_->AddReceived(elements.size());
  return elements;
}

absl::StatusOr<std::vector<LazyTensor>> LazyTensorsOf(
    std::shared_ptr<const IncomingMessage> message,
    std::shared_ptr<TransferCounters> counters) {
  std::vector<LazyTensor> tensors;
  tensors.reserve(message->num_tensors());
  for (size_t i = 0; i < message->num_tensors(); ++i) {
    ASSIGN_OR_RETURN(tensor::WireTensor wire, message->ParseTensorHeader(i));
    tensors.push_back(LazyTensor(message, counters, i, std::move(wire)));
  }
  return tensors;
}

}  // namespace hawser::rpc

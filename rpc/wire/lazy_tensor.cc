#include "rpc/wire/lazy_tensor.h"

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

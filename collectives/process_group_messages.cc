// The members of ProcessGroup that send and receive messages.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/join.h"
#include "async/status_macros.h"
#include "collectives/p2p_op.h"
#include "collectives/process_group.h"

namespace hawser::collectives {

absl::Status ProcessGroup::CheckMessage(const char* operation,
                                        const Tensor& tensor,
                                        uint32_t tag) const {
  if (!tensor.defined()) {
    return absl::InvalidArgumentError(
        absl::StrCat(operation, ": the tensor is undefined"));
  }
  if (absl::Status status = CheckDevice(tensor, *backend_); !status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(operation, ": ", std::string(status.message())));
  }
  if (tag > backend_->max_tag()) {
    return absl::InvalidArgumentError(absl::StrCat(
        operation, ": the tag ", tag, " is above ", backend_->max_tag(),
        ", the largest of backend ", std::string(backend_->name())));
  }
  return CheckUsable();
}

absl::Status ProcessGroup::CheckPeer(const char* operation, int peer) const {
  if (peer >= 0 && peer < size_) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      operation, ": there is no rank ", peer, " in a group of ", size_));
}

absl::StatusOr<Tensor> ProcessGroup::PrepareSend(const Tensor& tensor, int to,
                                                 uint32_t tag) const {
  RETURN_IF_ERROR(CheckPeer("send", to));
  RETURN_IF_ERROR(CheckMessage("send", tensor, tag));
  return tensor.Contiguous();
}

absl::StatusOr<Tensor> ProcessGroup::PrepareReceive(const Tensor& tensor,
                                                    uint32_t tag) const {
  RETURN_IF_ERROR(CheckMessage("receive", tensor, tag));
  if (tensor.is_contiguous()) return tensor;
  return Tensor::TryEmpty(tensor.shape(),
                          {.dtype = tensor.dtype(), .device = tensor.device()});
}

absl::StatusOr<Tensor> ProcessGroup::PrepareReceiveFrom(const Tensor& tensor,
                                                        int from,
                                                        uint32_t tag) const {
  RETURN_IF_ERROR(CheckPeer("receive", from));
  return PrepareReceive(tensor, tag);
}

Work ProcessGroup::StartSend(Tensor data, int to, uint32_t tag) {
  Work sent = backend_->ForDevice(data.device())
                  ->Send(BytesOf(data), to, tag, Deadline());
  // Keeps the data.
  return std::move(sent).Then(
      [this, to, data = std::move(data)](const absl::Status& result) {
        if (result.ok()) return result;
        return NoteFailure(absl::StrCat("send to rank ", to), result);
      });
}

async::Future<int> ProcessGroup::StartReceive(Tensor tensor, Tensor data,
                                              int from, uint32_t tag) {
  async::Future<int> received =
      backend_->ForDevice(data.device())
          ->Receive(MutableBytesOf(data), from, tag, Deadline());
  return std::move(received).Then(
      [this, from, tensor = std::move(tensor), data = std::move(data)](
          absl::StatusOr<int> result) mutable -> absl::StatusOr<int> {
        if (!result.ok()) {
          return NoteFailure(from == Backend::kAnyRank
                                 ? std::string("receive from any rank")
                                 : absl::StrCat("receive from rank ", from),
                             result.status());
        }
        if (data.is_same(tensor)) {
          tensor.BumpVersion();
        } else {
          RETURN_IF_ERROR(tensor.CopyFrom(data));
        }
        return result;
      });
}

Work ProcessGroup::StartReceiveFrom(Tensor tensor, Tensor data, int from,
                                    uint32_t tag) {
  return StartReceive(std::move(tensor), std::move(data), from, tag)
      .Then([](const absl::StatusOr<int>& result) { return result.status(); });
}

absl::Status ProcessGroup::Send(const Tensor& tensor, int to, uint32_t tag) {
  return SendAsync(tensor, to, tag).Wait();
}

Work ProcessGroup::SendAsync(const Tensor& tensor, int to, uint32_t tag) {
  absl::StatusOr<Tensor> data = PrepareSend(tensor, to, tag);
  if (!data.ok()) return async::MakeReadyFuture<void>(data.status());
  return StartSend(*std::move(data), to, tag);
}

absl::Status ProcessGroup::Receive(Tensor tensor, int from, uint32_t tag) {
  return ReceiveAsync(std::move(tensor), from, tag).Wait();
}

Work ProcessGroup::ReceiveAsync(Tensor tensor, int from, uint32_t tag) {
  absl::StatusOr<Tensor> data = PrepareReceiveFrom(tensor, from, tag);
  if (!data.ok()) return async::MakeReadyFuture<void>(data.status());
  return StartReceiveFrom(std::move(tensor), *std::move(data), from, tag);
}

absl::StatusOr<int> ProcessGroup::ReceiveAny(Tensor tensor, uint32_t tag) {
  return ReceiveAnyAsync(std::move(tensor), tag).Wait();
}

async::Future<int> ProcessGroup::ReceiveAnyAsync(Tensor tensor, uint32_t tag) {
  absl::StatusOr<Tensor> data = PrepareReceive(tensor, tag);
  if (!data.ok()) return async::MakeReadyFuture<int>(data.status());
  return StartReceive(std::move(tensor), *std::move(data), Backend::kAnyRank,
                      tag);
}

absl::Status ProcessGroup::BatchSendReceive(std::vector<P2pOp> operations) {
  return BatchSendReceiveAsync(std::move(operations)).Wait();
}

Work ProcessGroup::BatchSendReceiveAsync(std::vector<P2pOp> operations) {
  if (absl::Status status = CheckUsable(); !status.ok()) {
    return async::MakeReadyFuture<void>(std::move(status));
  }
  std::vector<Tensor> data;
  data.reserve(operations.size());
  for (const auto& [kind, tensor, peer, tag] : operations) {
    absl::StatusOr<Tensor> each = kind == P2pOp::Kind::kSend
                                      ? PrepareSend(tensor, peer, tag)
                                      : PrepareReceiveFrom(tensor, peer, tag);
    if (!each.ok()) {
      return async::MakeReadyFuture<void>(absl::Status(
          each.status().code(),
          absl::StrCat("operation ", data.size(),
                       " of a batch: ", std::string(each.status().message()))));
    }
    data.push_back(*std::move(each));
  }
  std::vector<Work> works;
  works.reserve(operations.size());
  for (size_t i = 0; i < operations.size(); ++i) {
    auto& [kind, tensor, peer, tag] = operations[i];
    works.push_back(kind == P2pOp::Kind::kSend
                        ? StartSend(std::move(data[i]), peer, tag)
                        : StartReceiveFrom(std::move(tensor),
                                           std::move(data[i]), peer, tag));
  }
  return async::JoinAll(std::move(works));
}

}  // namespace hawser::collectives

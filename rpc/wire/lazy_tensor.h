// Tensor of an incoming message whose elements have not been read yet.

#ifndef HAWSER_RPC_WIRE_LAZY_TENSOR_H_
#define HAWSER_RPC_WIRE_LAZY_TENSOR_H_

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/transport/transfer_counters.h"
#include "rpc/wire/message_codec.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"
#include "tensor/wire_codec.h"

namespace hawser::rpc {

// Lets a handler reduce or apply the elements of a request straight from the
// buffer of the transport, or from the memory of a peer on the same machine, in
// blocks that fit its cache.
//
// Dtype and shape are validated. The message stays in memory, and a peer's
// memory stays referenced, as long as a tensor of the message lives: drop them
// before anything slow. Copies share the message. Thread-safe, except for Read.
class LazyTensor {
 public:
  tensor::DType dtype() const { return wire_.dtype; }
  const tensor::Shape& shape() const { return wire_.shape; }
  // Of all elements.
  size_t bytes() const { return static_cast<size_t>(wire_.bytes); }
  bool requires_grad() const { return wire_.requires_grad; }

  // Returns a tensor on the CPU with the elements: in new storage, or, without
  // a copy, in the storage in which they arrived. At most once, and not before
  // ReadInto, since the tensor may be changed. kResourceExhausted if out of
  // memory; kUnavailable as ReadInto.
  absl::StatusOr<tensor::Tensor> Read() const;

  // Copies elements to `memory`: those from byte `offset` on, in row-major
  // order, as many as fill it. kInvalidArgument if they are not that many;
  // kUnavailable if they are in the memory of a peer that has ended or has
  // freed them. After an error the content of `memory` is unspecified.
  absl::Status ReadInto(size_t offset, std::span<std::byte> memory) const;
  // Same, of all elements: `memory` has bytes() bytes.
  absl::Status ReadInto(std::span<std::byte> memory) const;

  // Returns the elements in bytes [offset, offset + size) where they arrived,
  // without a copy: valid as long as a tensor of the message lives, and until
  // Read. Empty, so that ReadInto must be called, if there are no such bytes,
  // or they are in the memory of a peer, in several pieces or not aligned for
  // the dtype.
  std::span<const std::byte> ReadInPlace(size_t offset, size_t size) const;

 private:
  friend absl::StatusOr<std::vector<LazyTensor>> LazyTensorsOf(
      std::shared_ptr<const IncomingMessage> message,
      std::shared_ptr<TransferCounters> counters);

  LazyTensor(std::shared_ptr<const IncomingMessage> message,
             std::shared_ptr<TransferCounters> counters, size_t index,
             tensor::WireTensor wire)
      : message_(std::move(message)),
        counters_(std::move(counters)),
        index_(index),
        wire_(std::move(wire)) {}

  std::shared_ptr<const IncomingMessage> message_;
  std::shared_ptr<TransferCounters> counters_;
  size_t index_;
  tensor::WireTensor wire_;
};

// Returns the tensors of `message`, in order. Bytes that are read are counted
// in `counters`. kInternal if a header is malformed or does not match the bytes
// that came with it.
absl::StatusOr<std::vector<LazyTensor>> LazyTensorsOf(
    std::shared_ptr<const IncomingMessage> message,
    std::shared_ptr<TransferCounters> counters);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_WIRE_LAZY_TENSOR_H_

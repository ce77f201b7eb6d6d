// Reads typed values from the protobuf messages of proto/rpc.proto.

#ifndef HAWSER_RPC_WIRE_DECODER_H_
#define HAWSER_RPC_WIRE_DECODER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "rpc/identity/worker_info.h"
#include "tensor/tensor.h"

namespace hawser::rpc {

class Agent;

// A cursor over a `ValueList` that came from a peer. Each Read...() takes the
// next value of the innermost open list, map entry or, at the top, of the
// sequence.
//
// Trusts nothing: values of another kind, too few or too many, numbers out of
// range, nesting beyond kMaxDepth and bytes that are no message all give
// kInvalidArgument. Allocates no more than a small multiple of the bytes given.
//
// Not thread-safe.
class Decoder {
 public:
  static constexpr int kMaxDepth = 64;

  // `values` is a serialised `ValueList` and must outlive the decoder, as must
  // `agent` and `peer`, both of which may be null.
  Decoder(Agent* agent, const WorkerInfo* peer, std::string_view values,
          std::vector<tensor::Tensor> tensors);
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // The agent that received the message, or null outside a call.
  Agent* agent() const { return agent_; }
  // The worker that encoded, or null outside a call.
  const WorkerInfo* peer() const { return peer_; }

  // Whether the innermost open list, map or the sequence has no more values.
  bool AtEnd() const { return frames_.back().rest.empty(); }
  // Whether the next value exists and is null. Does not take it.
  bool NextIsNull() const;

  absl::Status ReadNull();
  absl::StatusOr<bool> ReadBool();
  // Also takes an unsigned value that fits.
  absl::StatusOr<int64_t> ReadInt();
  // Also takes a signed value that is not negative.
  absl::StatusOr<uint64_t> ReadUint();
  absl::StatusOr<double> ReadDouble();
  // Text or bytes.
  absl::StatusOr<std::string> ReadString();
  // Undefined for null.
  absl::StatusOr<tensor::Tensor> ReadTensor();
  // The serialised message, valid as long as `values`; its type must be `type`.
  absl::StatusOr<std::string_view> ReadMessage(std::string_view type);
  absl::StatusOr<std::vector<int64_t>> ReadInts();
  absl::StatusOr<std::vector<uint64_t>> ReadUints();
  absl::StatusOr<std::vector<double>> ReadDoubles();

  absl::Status EnterList();
  absl::Status EnterMap();
  // The next entry of the map; it holds a key and then a value.
  absl::Status EnterEntry();
  // Closes the innermost list, map or entry, which must be at its end.
  absl::Status Leave();

  // For WireTraits whose values may be used only once something has happened,
  // such as the confirmation of a reference: the call runs, or its caller sees
  // the reply, only when all prerequisites have completed, and fails with the
  // first that failed. No thread waits.
  void AddPrerequisite(async::Future<void> prerequisite);
  std::vector<async::Future<void>> TakePrerequisites() {
    return std::move(prerequisites_);
  }

 private:
  enum class FrameKind { kSequence, kMap, kEntry };
  struct Frame {
    FrameKind kind;
    std::string_view rest;
    // Elements taken so far.
    uint32_t taken = 0;
  };
  // One `Value`: which of its kinds is set, and the content of that field.
  struct Item {
    uint32_t field = 0;
    uint64_t number = 0;
    std::string_view bytes;
  };

  static absl::StatusOr<Item> ParseItem(std::string_view element);

  // The serialised next element of the innermost frame, and what follows it.
  absl::StatusOr<std::string_view> PeekElement(std::string_view& rest) const;
  absl::StatusOr<std::string_view> NextElement();
  absl::StatusOr<Item> Next();
  absl::StatusOr<Item> Next(uint32_t field);
  absl::Status Enter(FrameKind kind, std::string_view content);

  Agent* const agent_;
  const WorkerInfo* const peer_;
  const std::vector<tensor::Tensor> tensors_;
  absl::InlinedVector<Frame, 4> frames_;
  std::vector<async::Future<void>> prerequisites_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_WIRE_DECODER_H_

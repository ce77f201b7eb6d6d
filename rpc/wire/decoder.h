// Decoder of typed values from the protobuf messages of proto/rpc.proto.

#ifndef HAWSER_RPC_WIRE_DECODER_H_
#define HAWSER_RPC_WIRE_DECODER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "rpc/identity/worker_info.h"
#include "tensor/tensor.h"

namespace hawser::rpc {

class Agent;

// A cursor over a `ValueList` from a peer. Each Read...() consumes the next
// value of the innermost open list, map entry or, at the top level, of the
// sequence.
//
// The input is untrusted: values of the wrong kind or number, numbers out of
// range, nesting beyond kMaxDepth and malformed bytes give kInvalidArgument.
// Allocates at most a small multiple of the input size.
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

  // Whether the innermost open list or map, or the sequence, has no more
  // values.
  bool AtEnd() const { return frames_.back().rest.empty(); }
  // Whether the next value exists and is null. Does not consume it.
  bool NextIsNull() const;

  absl::Status ReadNull();
  absl::StatusOr<bool> ReadBool();
  // Also accepts an unsigned value that fits.
  absl::StatusOr<int64_t> ReadInt();
  // Also accepts a signed value that is not negative.
  absl::StatusOr<uint64_t> ReadUint();
  absl::StatusOr<double> ReadDouble();
  // Text or bytes.
  absl::StatusOr<std::string> ReadString();
  // Returns an undefined tensor for null.
  absl::StatusOr<tensor::Tensor> ReadTensor();
  // Returns the serialised message, valid as long as `values`; its type must be
  // `type`.
  absl::StatusOr<std::string_view> ReadMessage(std::string_view type);
  absl::StatusOr<std::vector<int64_t>> ReadInts();
  absl::StatusOr<std::vector<uint64_t>> ReadUints();
  absl::StatusOr<std::vector<double>> ReadDoubles();

  absl::Status EnterList();
  absl::Status EnterMap();
  // Enters the next entry of the map, which has a key and then a value.
  absl::Status EnterEntry();
  // Leaves the innermost list, map or entry, which must be at its end.
  absl::Status Leave();

  // For WireTraits whose values may be used only after an event, such as the
  // confirmation of a reference. The call runs, or its caller gets the reply,
  // only when all prerequisites have completed, and fails with the first error.
  // Does not block a thread.
  void AddPrerequisite(async::Future<void> prerequisite);

  // Starts a prerequisite of a call that must not wait for the others.
  using StartPrerequisite = absl::AnyInvocable<async::Future<void>() &&>;
  // Adds a prerequisite that excludes other calls once it has completed, such
  // as the acquisition of a lock. `start` runs when all prerequisites of
  // AddPrerequisite have succeeded, in the thread that completes the last one,
  // or in TakePrerequisites; it does not run if one fails.
  void AddLastPrerequisite(StartPrerequisite start);

  // The prerequisites that have not succeeded yet.
  std::vector<async::Future<void>> TakePrerequisites();

 private:
  enum class FrameKind { kSequence, kMap, kEntry };
  struct Frame {
    FrameKind kind;
    std::string_view rest;
    // Elements consumed so far.
    uint32_t taken = 0;
  };
  // One `Value`: its kind and the content of that field.
  struct Item {
    uint32_t field = 0;
    uint64_t number = 0;
    std::string_view bytes;
  };

  static absl::StatusOr<Item> ParseItem(std::string_view element);

  // Returns the serialised next element of the innermost frame; `rest` receives
  // the bytes after it.
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
  std::vector<StartPrerequisite> last_prerequisites_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_WIRE_DECODER_H_

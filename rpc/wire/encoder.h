// Encoder of typed values to the protobuf messages of proto/rpc.proto.

#ifndef HAWSER_RPC_WIRE_ENCODER_H_
#define HAWSER_RPC_WIRE_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "rpc/identity/worker_info.h"
#include "tensor/tensor.h"

namespace hawser::rpc {

class Agent;

// Builds the values of one message: a `ValueList` and the tensors that it
// refers to. Each Write...() appends one value to the innermost open list, map
// entry or, at the top level, to the sequence. Lists, maps and entries that are
// opened must be closed.
//
// Not thread-safe.
class Encoder {
 public:
  // `agent` and `peer` are for WireTraits that need them. Both may be null;
  // they must outlive the encoder.
  explicit Encoder(Agent* agent = nullptr, const WorkerInfo* peer = nullptr)
      : agent_(agent), peer_(peer) {}
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  // The agent that sends, or null outside a call.
  Agent* agent() const { return agent_; }
  // The worker that will decode, or null outside a call.
  const WorkerInfo* peer() const { return peer_; }

  void WriteNull();
  void WriteBool(bool value);
  void WriteInt(int64_t value);
  void WriteUint(uint64_t value);
  void WriteDouble(double value);
  // Writes text if `value` is UTF-8, else bytes.
  void WriteString(std::string_view value);
  void WriteBytes(std::string_view value);
  // Writes null if undefined. Elements are read when the message is sent.
  void WriteTensor(tensor::Tensor value);
  // Writes a value encoded as the serialised message `data` of type `type`.
  void WriteMessage(std::string_view type, std::string_view data);
  void WriteInts(std::span<const int64_t> values);
  void WriteUints(std::span<const uint64_t> values);
  void WriteDoubles(std::span<const double> values);

  void BeginList();
  void EndList();
  // Opens a map of entries; each entry has a key and then a value.
  void BeginMap();
  void EndMap();
  void BeginEntry();
  void EndEntry();

  // Whether the last value written is null.
  bool last_is_null() const { return last_is_null_; }

  // Returns the serialised `ValueList` and empties the encoder.
  std::string TakeValues();
  // Returns the tensors in the order of their indices.
  std::vector<tensor::Tensor> TakeTensors();

 private:
  // Opens a length-delimited field; Close sets its length.
  void Open(uint8_t tag);
  void Close();
  // Opens the next element of the innermost list, map or entry.
  void OpenElement();
  // Sets the tag of the elements of the list, map or entry opened last; for an
  // entry, the first of its two tags.
  void Begin(uint8_t element_tag, bool entry);
  void End();

  Agent* const agent_;
  const WorkerInfo* const peer_;
  std::string out_;
  std::vector<tensor::Tensor> tensors_;
  // Start of the content of each open message.
  absl::InlinedVector<size_t, 4> open_;
  // For each open list, map and entry: the tag of its next element, and whether
  // it is an entry.
  std::vector<uint8_t> element_tags_;
  std::vector<bool> in_entry_;
  bool last_is_null_ = false;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_WIRE_ENCODER_H_

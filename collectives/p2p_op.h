// One message of a batch of sends and receives.

#ifndef HAWSER_COLLECTIVES_P2P_OP_H_
#define HAWSER_COLLECTIVES_P2P_OP_H_

#include <cstdint>
#include <utility>

#include "tensor/tensor.h"

namespace hawser::collectives {

// A send or a receive for ProcessGroup::BatchSendReceive, with the arguments of
// ProcessGroup::Send or Receive.
struct P2pOp {
  enum class Kind { kSend, kReceive };

  static P2pOp Send(tensor::Tensor tensor, int to, uint32_t tag = 0) {
    return {Kind::kSend, std::move(tensor), to, tag};
  }
  static P2pOp Receive(tensor::Tensor tensor, int from, uint32_t tag = 0) {
    return {Kind::kReceive, std::move(tensor), from, tag};
  }

  Kind kind;
  tensor::Tensor tensor;
  // The other rank.
  int peer;
  uint32_t tag;
};

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_P2P_OP_H_

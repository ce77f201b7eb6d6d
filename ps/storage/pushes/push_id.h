#ifndef HAWSER_PS_STORAGE_PUSHES_PUSH_ID_H_
#define HAWSER_PS_STORAGE_PUSHES_PUSH_ID_H_

#include <cstdint>

#include "rpc/identity/worker_info.h"

namespace hawser::ps {

// Identity of a push, by which a repeated one is recognised.
struct PushId {
  rpc::Incarnation client{};
  // Counts the pushes of the client to the table, from 1.
  uint64_t sequence = 0;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_PUSHES_PUSH_ID_H_

// Opens links through shared memory.

#ifndef HAWSER_RPC_SAME_HOST_OPENER_H_
#define HAWSER_RPC_SAME_HOST_OPENER_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "ipc/event_loop.h"
#include "rpc/link/link_connection.h"
#include "rpc/transport/gate.h"
#include "rpc/transport/payload.h"
#include "rpc/transport/transport.h"

namespace hawser::rpc {

// Asks the peer over the socket, then connects by the handshake. Thread-safe.
class SameHostOpener final : public LinkOpener {
 public:
  // Users of `loop` enter `gate` first; `loop` must live until the gate is
  // closed.
  SameHostOpener(std::shared_ptr<Connection> socket,
                 std::shared_ptr<ipc::EventLoop> loop,
                 std::shared_ptr<Gate> gate, size_t max_message_bytes);

  void Open(Done done) override;
  // Does nothing: a request ends with the calls of the socket.
  void Cancel() override {}

 private:
  static void OnReply(ipc::EventLoop* loop, size_t max_message_bytes,
                      absl::StatusOr<Payload> reply, Done done);

  const std::shared_ptr<Connection> socket_;
  // Callbacks do not share it: the loop owns some of them.
  const std::shared_ptr<ipc::EventLoop> loop_;
  const std::shared_ptr<Gate> gate_;
  const size_t max_message_bytes_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_SAME_HOST_OPENER_H_

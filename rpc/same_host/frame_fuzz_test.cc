// Fuzz test: arbitrary bytes as the frames that a peer writes into shared
// memory, at either end.

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/check.h"
#include "async/clock.h"
#include "fs/unique_fd.h"
#include "ipc/byte_ring.h"
#include "ipc/event_loop.h"
#include "ipc/peer_process.h"
#include "proto/same_host.pb.h"
#include "rpc/link/link_client.h"
#include "rpc/link/link_server.h"
#include "rpc/same_host/link.h"
#include "rpc/same_host/link_memory.h"
#include "rpc/transport/payload.h"
#include "rpc/transport/transport.h"

namespace hawser::rpc {
namespace {

constexpr size_t kMaxMessageBytes = size_t{1} << 16;

// State shared by all inputs. Addresses in frames refer to this process.
struct World {
  World() {
    const std::vector<TransportMethod> served = {
        {.path = "/t.T/Echo",
         .handler = [](std::unique_ptr<IncomingCall> call) {
           call->Reply(call->TakeRequest());
         }}};
    methods = std::make_shared<const LinkMethods>(served);
    int ends[2];
    HAWSER_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) ==
                 0);
    socket = fs::UniqueFd(ends[0]);
    other = fs::UniqueFd(ends[1]);
    peer = *ipc::PeerProcess::Of(socket.get());
  }

  const std::unique_ptr<ipc::EventLoop> loop = *ipc::EventLoop::Create({});
  std::shared_ptr<const LinkMethods> methods;
  fs::UniqueFd socket;
  fs::UniqueFd other;
  std::shared_ptr<const ipc::PeerProcess> peer;
};

World& TheWorld() {
  static World* const world = new World;
  return *world;
}

fs::UniqueFd Copy(int fd) { return fs::UniqueFd(dup(fd)); }

void Play(SameHostLink::Side side, std::string_view input) {
  World& world = TheWorld();
  const std::shared_ptr<LinkMemory> memory = LinkMemory::Create()->first;
  const bool is_server = side == SameHostLink::Side::kServer;
  LinkHalf& in =
      is_server ? memory->layout().to_server : memory->layout().to_client;
  LinkHalf& out =
      is_server ? memory->layout().to_client : memory->layout().to_server;
  ipc::RingWriter writer(&in.control, in.bytes.data(), kRingBytes);
  ipc::RingReader reader(&out.control, out.bytes.data(), kRingBytes);
  auto link = std::make_shared<SameHostLink>(
      SameHostLink::Parts{.side = side,
                          .memory = memory,
                          .peer = world.peer,
                          .socket = Copy(world.socket.get()),
                          .doorbell = Copy(world.loop->doorbell()),
                          .max_message_bytes = kMaxMessageBytes},
      world.loop.get());
  if (is_server) {
    link->SetHandler(
        std::make_shared<LinkServer>(link, world.methods, std::nullopt));
  } else {
    auto client = std::make_shared<LinkClient>(
        link,
        [loop = world.loop.get()](absl::AnyInvocable<void() &&> closure) {
          loop->Post(std::move(closure));
        },
        absl::ZeroDuration());
    link->SetHandler(client);
    for (Connection::CallId id = 1; id < 8; ++id) {
      Payload request("x");
      Connection::Done done = [](const absl::StatusOr<Payload>& reply) {
        if (reply.ok()) (void)reply->Flatten();
      };
      HAWSER_CHECK(client->Call(id, "/t.T/Echo", request, async::kNever, done));
    }
  }
  std::string bytes;
  v1::SameHostFrame answer;
  while (!input.empty()) {
    // Each frame is preceded by its length in one byte.
    const size_t length =
        std::min<size_t>(static_cast<uint8_t>(input[0]), input.size() - 1);
    HAWSER_CHECK(writer.Write(input.substr(1, length)) ==
                 ipc::RingResult::kDone);
    input.remove_prefix(1 + length);
    while (link->Poll()) {
    }
    while (reader.Read(bytes) == ipc::RingResult::kDone) {
      HAWSER_CHECK(answer.ParseFromString(bytes));
    }
  }
  link->Close(absl::CancelledError("the end of the input"));
}

}  // namespace
}  // namespace hawser::rpc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using hawser::rpc::SameHostLink;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  hawser::rpc::Play(SameHostLink::Side::kServer, input);
  hawser::rpc::Play(SameHostLink::Side::kClient, input);
  return 0;
}

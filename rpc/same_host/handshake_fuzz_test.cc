// Fuzz test: arbitrary bytes as a peer's handshake messages, at either end.

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/check.h"
#include "async/future.h"
#include "fs/unique_fd.h"
#include "ipc/event_loop.h"
#include "ipc/peer_process.h"
#include "ipc/unix_message.h"
#include "net/auth/identity.h"
#include "proto/same_host.pb.h"
#include "rpc/same_host/handshake.h"
#include "rpc/same_host/link.h"
#include "rpc/same_host/link_memory.h"

namespace hawser::rpc {
namespace {

// The other end may have closed already.
void Send(int socket, std::string_view bytes, std::span<const int> fds) {
  ipc::SendUnixBytes(socket, std::string(bytes), fds).IgnoreError();
}

struct World {
  World() {
    acceptor = *SameHostAcceptor::Start(
        loop.get(), size_t{1} << 20,
        [](const ipc::PeerProcess&, const std::optional<net::Identity>&) {
          return true;
        },
        [this](SameHostLink::Parts, std::optional<net::Identity>) {
          HAWSER_CHECK(is_proven) << "a link without a proof";
        });
    acceptor_name = Admit().socket_name();
    name = absl::StrCat("hawser-fuzz-", getpid());
    door = *ipc::ListenAbstract(name);
  }

  v1::OpenSameHostReply Admit() {
    v1::OpenSameHostRequest request;
    request.set_boot_id(ipc::BootId());
    return *acceptor->Admit(request, std::nullopt);
  }

  const std::unique_ptr<ipc::EventLoop> loop = *ipc::EventLoop::Create({});
  std::shared_ptr<SameHostAcceptor> acceptor;
  std::string acceptor_name;
  // Whether the client that greets has proven access to its memory.
  std::atomic<bool> is_proven = false;
  // Socket name of the server simulated here.
  std::string name;
  fs::UniqueFd door;
};

// Makes a probe with the right value, or nearly that, also have the right
// address.
void MakeGood(v1::MemoryProbe& probe) {
  static const uint64_t word = 42;
  if (static_cast<uint8_t>(probe.value()) == word) {
    probe.set_address(reinterpret_cast<uintptr_t>(&word));
  }
}

// Whether this process, which is the peer, has the value where it says.
bool IsProof(const v1::MemoryProbe& probe) {
  static const std::shared_ptr<const ipc::PeerProcess> self =
      *ipc::PeerProcess::Open(getpid(),
                              *ipc::PeerProcess::StartTimeOf(getpid()));
  uint64_t value = 0;
  return self->Read(probe.address(), &value, sizeof(value)).ok() &&
         value == probe.value();
}

// Acts as a client. The ticket and the probe of a parseable hello are made
// valid, to get further in the handshake.
void Greet(World& world, std::string_view input) {
  std::string bytes(input);
  world.is_proven = false;
  if (v1::SameHostHello hello; hello.ParseFromString(bytes)) {
    // Each ticket is used, since only a few may be outstanding.
    hello.set_ticket(world.Admit().ticket());
    MakeGood(*hello.mutable_probe());
    world.is_proven = IsProof(hello.probe());
    bytes = hello.SerializeAsString();
  }
  const fs::UniqueFd socket = *ipc::ConnectAbstract(world.acceptor_name);
  const int bell[] = {world.loop->doorbell()};
  Send(socket.get(), bytes, bell);
  // Wait until it replies or closes.
  pollfd answer{.fd = socket.get(), .events = POLLIN, .revents = 0};
  HAWSER_CHECK(poll(&answer, 1, 20'000) == 1);
  v1::SameHostWelcome welcome;
  if (ipc::ReceiveUnixMessage(socket.get(), 2, welcome).ok()) {
    Send(socket.get(), input, {});
    HAWSER_CHECK(poll(&answer, 1, 20'000) == 1);
  }
}

// Acts as a server that replies with `input`, whose probe is also made valid.
void Welcome(World& world, std::string_view input) {
  v1::OpenSameHostReply open;
  open.set_socket_name(world.name);
  async::Promise<void> ended;
  const async::Future<void> done = ended.future();
  bool is_proven = false;
  ConnectSameHost(world.loop.get(), open, size_t{1} << 20,
                  [&](const absl::StatusOr<SameHostLink::Parts>& parts) {
                    HAWSER_CHECK(!parts.ok() || is_proven)
                        << "a link without a proof";
                    ended.Set(absl::OkStatus());
                  });
  pollfd waiting{.fd = world.door.get(), .events = POLLIN, .revents = 0};
  HAWSER_CHECK(poll(&waiting, 1, 20'000) == 1);
  const fs::UniqueFd socket(
      accept4(world.door.get(), nullptr, nullptr, SOCK_CLOEXEC));
  auto memory = LinkMemory::Create();
  HAWSER_CHECK(memory.ok());
  std::string bytes(input);
  if (v1::SameHostWelcome welcome; welcome.ParseFromString(bytes)) {
    MakeGood(*welcome.mutable_probe());
    is_proven = IsProof(welcome.probe());
    bytes = welcome.SerializeAsString();
  }
  const int sent[] = {memory->second.get(), world.loop->doorbell()};
  Send(socket.get(), bytes, sent);
  (void)done.Wait();
}

}  // namespace
}  // namespace hawser::rpc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto& world = *new hawser::rpc::World;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  // An empty message means end of file, and a long one is truncated.
  if (input.empty() || input.size() > 256) return 0;
  hawser::rpc::Greet(world, input);
  hawser::rpc::Welcome(world, input);
  return 0;
}

#include "rpc/same_host/handshake.h"

#include <sys/random.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "ipc/peer_process.h"
#include "ipc/unix_message.h"

namespace hawser::rpc {
namespace {

constexpr absl::Duration kTicketLife = absl::Seconds(10);
constexpr size_t kMaxTickets = 256;
// Above this number, the oldest connection is dropped.
constexpr size_t kMaxPending = 64;
constexpr size_t kTicketBytes = 16;

absl::StatusOr<std::string> RandomBytes(size_t size) {
  std::string bytes(size, '\0');
  if (getrandom(bytes.data(), size, 0) != static_cast<ssize_t>(size)) {
    return absl::ErrnoToStatus(errno, "cannot read random numbers");
  }
  return bytes;
}

// A value in this process that the peer reads to check its access.
uint64_t ProbeValue() {
  static const uint64_t value = [] {
    uint64_t random = 0;
    [[maybe_unused]] const ssize_t got = getrandom(&random, sizeof(random), 0);
    return random;
  }();
  return value;
}

const uint64_t& ProbeWord() {
  static const uint64_t word = ProbeValue();
  return word;
}

void SetProbe(v1::MemoryProbe* probe) {
  probe->set_address(reinterpret_cast<uintptr_t>(&ProbeWord()));
  probe->set_value(ProbeWord());
}

absl::Status CheckProbe(const ipc::PeerProcess& peer,
                        const v1::MemoryProbe& probe) {
  uint64_t value = 0;
  RETURN_IF_ERROR(peer.Read(probe.address(), &value, sizeof(value)));
  if (value != probe.value()) {
    return absl::PermissionDeniedError(
        "the peer's memory does not contain the announced value");
  }
  return absl::OkStatus();
}

// Ensures that a write to it does not block or have other effects.
absl::Status CheckDoorbell(const fs::UniqueFd& fd) {
  std::array<char, 64> target{};
  const ssize_t size =
      readlink(absl::StrCat("/proc/self/fd/", fd.get()).c_str(), target.data(),
               target.size());
  if (size <= 0 ||
      absl::string_view(target.data(), static_cast<size_t>(size)) !=
          "anon_inode:[eventfd]") {
    return absl::InvalidArgumentError("the peer's doorbell is not an eventfd");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<SameHostAcceptor>> SameHostAcceptor::Start(
    ipc::EventLoop* loop, size_t max_message_bytes, ShouldAccept should_accept,
    OnLink on_link) {
  ASSIGN_OR_RETURN(const std::string random, RandomBytes(kTicketBytes));
  std::string name = absl::StrCat("hawser-", absl::BytesToHexString(random));
  ASSIGN_OR_RETURN(fs::UniqueFd listener, ipc::ListenAbstract(name));
  const int fd = listener.get();
  std::shared_ptr<SameHostAcceptor> acceptor(new SameHostAcceptor(
      loop, max_message_bytes, std::move(should_accept), std::move(on_link),
      std::move(name), std::move(listener)));
  RETURN_IF_ERROR(
      loop->Watch(fd, [weak = std::weak_ptr<SameHostAcceptor>(acceptor)] {
        if (auto self = weak.lock()) self->Accept();
      }));
  return acceptor;
}

absl::StatusOr<v1::OpenSameHostReply> SameHostAcceptor::Admit(
    const v1::OpenSameHostRequest& request,
    std::optional<net::Identity> caller) {
  if (ipc::BootId().empty() || request.boot_id() != ipc::BootId()) {
    return absl::FailedPreconditionError("the client runs on another machine");
  }
  ASSIGN_OR_RETURN(std::string ticket, RandomBytes(kTicketBytes));
  const async::MonotonicTime now = std::chrono::steady_clock::now();
  v1::OpenSameHostReply reply;
  reply.set_socket_name(name_);
  reply.set_ticket(ticket);
  async::MutexLock lock(&mutex_);
  absl::erase_if(tickets_,
                 [&](const auto& t) { return t.second.good_until < now; });
  if (tickets_.size() >= kMaxTickets) {
    return absl::ResourceExhaustedError(
        "too many clients request a link at once");
  }
  tickets_.emplace(std::move(ticket), Ticket{async::AddDelay(now, kTicketLife),
                                             std::move(caller)});
  return reply;
}

bool SameHostAcceptor::listening() {
  async::MutexLock lock(&mutex_);
  return listener_.valid();
}

std::optional<SameHostAcceptor::Ticket> SameHostAcceptor::TakeTicket(
    const std::string& bytes) {
  async::MutexLock lock(&mutex_);
  auto it = tickets_.find(bytes);
  if (it == tickets_.end()) return std::nullopt;
  Ticket ticket = std::move(it->second);
  tickets_.erase(it);
  if (ticket.good_until < std::chrono::steady_clock::now()) return std::nullopt;
  return ticket;
}

void SameHostAcceptor::Accept() {
  async::MutexLock lock(&mutex_);
  while (listener_.valid()) {
    fs::UniqueFd fd(accept4(listener_.get(), nullptr, nullptr,
                            SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) {
      if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return;
      // Without free descriptors, waiting connections would wake the loop
      // forever.
      loop_.Unwatch(listener_.get());
      listener_.Reset();
      return;
    }
    absl::StatusOr<std::shared_ptr<const ipc::PeerProcess>> peer =
        ipc::PeerProcess::Of(fd.get());
    if (!peer.ok()) continue;
    const int number = fd.get();
    auto pending = std::make_shared<Pending>();
    pending->parts = {.side = SameHostLink::Side::kServer,
                      .peer = *std::move(peer),
                      .socket = std::move(fd),
                      .max_message_bytes = max_message_bytes_};
    if (!loop_
             .Watch(number,
                    [weak = weak_from_this(), number] {
                      if (auto self = weak.lock()) self->Continue(number);
                    })
             .ok()) {
      continue;
    }
    if (pending_.size() >= kMaxPending) DropLocked(order_.front());
    pending_.emplace(number, std::move(pending));
    order_.push_back(number);
  }
}

void SameHostAcceptor::DropLocked(int fd) {
  loop_.Unwatch(fd);
  order_.remove(fd);
  pending_.erase(fd);
}

absl::Status SameHostAcceptor::Welcome(Pending& pending) {
  SameHostLink::Parts& parts = pending.parts;
  v1::SameHostHello hello;
  ASSIGN_OR_RETURN(std::vector<fs::UniqueFd> fds,
                   ipc::ReceiveUnixMessage(parts.socket.get(), 1, hello));
  std::optional<Ticket> ticket = TakeTicket(hello.ticket());
  if (!ticket.has_value()) {
    return absl::UnauthenticatedError(
        "the ticket is unknown or was already used");
  }
  pending.caller = std::move(ticket->caller);
  if (!should_accept_(*parts.peer, pending.caller)) {
    return absl::ResourceExhaustedError("the client has too many links");
  }
  RETURN_IF_ERROR(CheckProbe(*parts.peer, hello.probe()));
  parts.doorbell = std::move(fds[0]);
  RETURN_IF_ERROR(CheckDoorbell(parts.doorbell));
  ASSIGN_OR_RETURN(auto created, LinkMemory::Create());
  parts.memory = std::move(created.first);
  v1::SameHostWelcome welcome;
  SetProbe(welcome.mutable_probe());
  const int sent[] = {created.second.get(), loop_.doorbell()};
  return ipc::SendUnixMessage(parts.socket.get(), welcome, sent);
}

// Events of one connection are delivered one at a time.
void SameHostAcceptor::Continue(int fd) {
  std::shared_ptr<Pending> pending;
  {
    async::MutexLock lock(&mutex_);
    auto it = pending_.find(fd);
    if (it == pending_.end()) return;
    pending = it->second;
  }
  absl::Status status;
  if (!std::exchange(pending->welcomed, true)) {
    status = Welcome(*pending);
    if (status.ok()) return;
  } else {
    v1::SameHostReady ready;
    status = ipc::ReceiveUnixMessage(fd, 0, ready).status();
  }
  {
    async::MutexLock lock(&mutex_);
    auto it = pending_.find(fd);
    if (it == pending_.end() || it->second != pending) return;
    DropLocked(fd);
  }
  if (status.ok()) {
    on_link_(std::move(pending->parts), std::move(pending->caller));
  }
}

void SameHostAcceptor::Close() {
  async::MutexLock lock(&mutex_);
  if (listener_.valid()) loop_.Unwatch(listener_.get());
  listener_.Reset();
  while (!order_.empty()) DropLocked(order_.front());
}

namespace {

// A handshake in progress. Kept alive by its watch in the loop.
class Connector {
 public:
  using Done = absl::AnyInvocable<void(absl::StatusOr<SameHostLink::Parts>) &&>;

  Connector(ipc::EventLoop* loop, SameHostLink::Parts parts, Done done)
      : loop_(*loop), parts_(std::move(parts)), done_(std::move(done)) {}

  int fd() const { return parts_.socket.get(); }

  // The handshake failed.
  void Fail(absl::Status status) { std::move(done_)(std::move(status)); }

  // The server's reply arrived.
  void Finish() {
    absl::Status status = Join();
    loop_.Unwatch(fd());
    Done done = std::move(done_);
    if (status.ok()) {
      std::move(done)(std::move(parts_));
    } else {
      std::move(done)(std::move(status));
    }
  }

 private:
  absl::Status Join() {
    v1::SameHostWelcome welcome;
    ASSIGN_OR_RETURN(std::vector<fs::UniqueFd> fds,
                     ipc::ReceiveUnixMessage(fd(), 2, welcome));
    RETURN_IF_ERROR(CheckProbe(*parts_.peer, welcome.probe()));
    ASSIGN_OR_RETURN(parts_.memory, LinkMemory::Map(fds[0]));
    parts_.doorbell = std::move(fds[1]);
    RETURN_IF_ERROR(CheckDoorbell(parts_.doorbell));
    v1::SameHostReady ready;
    ready.set_ready(true);
    return ipc::SendUnixMessage(fd(), ready, {});
  }

  ipc::EventLoop& loop_;
  SameHostLink::Parts parts_;
  Done done_;
};

}  // namespace

void ConnectSameHost(
    ipc::EventLoop* loop, const v1::OpenSameHostReply& reply,
    size_t max_message_bytes,
    absl::AnyInvocable<void(absl::StatusOr<SameHostLink::Parts>) &&> done) {
  const auto begin = [&]() -> absl::StatusOr<SameHostLink::Parts> {
    SameHostLink::Parts parts{.side = SameHostLink::Side::kClient,
                              .max_message_bytes = max_message_bytes};
    ASSIGN_OR_RETURN(parts.socket, ipc::ConnectAbstract(reply.socket_name()));
    ASSIGN_OR_RETURN(parts.peer, ipc::PeerProcess::Of(parts.socket.get()));
    v1::SameHostHello hello;
    hello.set_ticket(reply.ticket());
    SetProbe(hello.mutable_probe());
    const int sent[] = {loop->doorbell()};
    RETURN_IF_ERROR(ipc::SendUnixMessage(parts.socket.get(), hello, sent));
    return parts;
  };
  absl::StatusOr<SameHostLink::Parts> parts = begin();
  if (!parts.ok()) {
    std::move(done)(parts.status());
    return;
  }
  auto connector =
      std::make_shared<Connector>(loop, *std::move(parts), std::move(done));
  if (absl::Status status =
          loop->Watch(connector->fd(), [connector] { connector->Finish(); });
      !status.ok()) {
    connector->Fail(std::move(status));
  }
}

}  // namespace hawser::rpc

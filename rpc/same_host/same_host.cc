#include "rpc/same_host/same_host.h"

#include <sched.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "proto/same_host.pb.h"
#include "rpc/link/link_connection.h"
#include "rpc/same_host/opener.h"

namespace hawser::rpc {
namespace {

// Limit per client, since each link costs memory, descriptors and a poll per
// round of the loop. A connection needs one.
constexpr size_t kMaxLinksPerClient = 256;

std::string ClientOf(const ipc::PeerProcess& peer,
                     const std::optional<net::Identity>& caller) {
  return caller.has_value() ? net::ToUri(*caller) : absl::StrCat(peer.pid());
}

// On a single core, spinning keeps the peer from running.
absl::Duration UsableSpin(absl::Duration spin) {
  cpu_set_t cores;
  if (spin != absl::InfiniteDuration() &&
      sched_getaffinity(0, sizeof(cores), &cores) == 0 &&
      CPU_COUNT(&cores) == 1) {
    return absl::ZeroDuration();
  }
  return spin;
}

}  // namespace

SameHost::SameHost(Options options, std::shared_ptr<Gate> gate)
    : options_{.max_message_bytes = options.max_message_bytes,
               .reply_quota = options.reply_quota,
               .spin = UsableSpin(options.spin)},
      gate_(std::move(gate)) {}

SameHost::~SameHost() { Shutdown(); }

absl::StatusOr<std::shared_ptr<ipc::EventLoop>> SameHost::LoopLocked() {
  if (loop_ == nullptr) {
    ASSIGN_OR_RETURN(std::unique_ptr<ipc::EventLoop> loop,
                     ipc::EventLoop::Create({.spin = options_.spin}));
    loop_ = std::move(loop);
  }
  return loop_;
}

TransportMethod SameHost::Serve(const std::vector<TransportMethod>& methods) {
  methods_ = std::make_shared<const LinkMethods>(methods);
  return {.path = "/hawser.v1.SameHostService/Open",
          .handler = [this](std::unique_ptr<IncomingCall> call) {
            absl::StatusOr<v1::OpenSameHostReply> reply = Open(*call);
            if (reply.ok()) {
              call->Reply(Payload(reply->SerializeAsString()));
            } else {
              call->Reply(reply.status());
            }
          }};
}

absl::StatusOr<v1::OpenSameHostReply> SameHost::Open(IncomingCall& call) {
  ASSIGN_OR_RETURN(const std::string bytes, call.TakeRequest().Flatten());
  v1::OpenSameHostRequest parsed;
  if (!parsed.ParseFromString(bytes)) {
    return absl::InvalidArgumentError("the received request is malformed");
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<SameHostAcceptor> door, acceptor());
  ASSIGN_OR_RETURN(std::optional<net::Identity> caller, call.caller());
  return door->Admit(parsed, std::move(caller));
}

absl::StatusOr<std::shared_ptr<SameHostAcceptor>> SameHost::acceptor() {
  async::MutexLock lock(&mutex_);
  if (stopped_) return absl::UnavailableError("the worker is shutting down");
  if (acceptor_ == nullptr || !acceptor_->listening()) {
    ASSIGN_OR_RETURN(const std::shared_ptr<ipc::EventLoop> loop, LoopLocked());
    ASSIGN_OR_RETURN(acceptor_,
                     SameHostAcceptor::Start(
                         loop.get(), options_.max_message_bytes,
                         [this](const ipc::PeerProcess& peer,
                                const std::optional<net::Identity>& caller) {
                           return ShouldAccept(peer, caller);
                         },
                         [this](SameHostLink::Parts parts,
                                std::optional<net::Identity> caller) {
                           OnLink(std::move(parts), std::move(caller));
                         }));
  }
  return acceptor_;
}

bool SameHost::ShouldAccept(const ipc::PeerProcess& peer,
                            const std::optional<net::Identity>& caller) {
  const std::string client = ClientOf(peer, caller);
  async::MutexLock lock(&mutex_);
  std::erase_if(links_, [](const Link& link) { return link.link.expired(); });
  const auto of_client =
      std::count_if(links_.begin(), links_.end(),
                    [&](const Link& link) { return link.client == client; });
  return static_cast<size_t>(of_client) < kMaxLinksPerClient;
}

void SameHost::OnLink(SameHostLink::Parts parts,
                      std::optional<net::Identity> caller) {
  std::shared_ptr<SameHostLink> link;
  {
    async::MutexLock lock(&mutex_);
    if (stopped_) return;
    std::string client = ClientOf(*parts.peer, caller);
    link = std::make_shared<SameHostLink>(std::move(parts), loop_.get());
    link->LimitReplies(options_.reply_quota, client);
    link->SetHandler(
        std::make_shared<LinkServer>(link, methods_, std::move(caller)));
    links_.push_back({link, std::move(client)});
  }
  link->Start();
}

std::shared_ptr<Connection> SameHost::Wrap(std::shared_ptr<Connection> socket) {
  async::MutexLock lock(&mutex_);
  absl::StatusOr<std::shared_ptr<ipc::EventLoop>> loop = LoopLocked();
  // Without a loop, calls use the socket.
  if (!loop.ok()) return socket;
  auto opener = std::make_unique<SameHostOpener>(socket, *loop, gate_,
                                                 options_.max_message_bytes);
  return std::make_shared<LinkConnection>(
      std::move(socket), std::move(opener), gate_,
      LinkConnection::Options{
          .max_request_bytes = options_.max_message_bytes,
          .spin = options_.spin,
          .post = [loop = loop->get()](absl::AnyInvocable<void() &&> closure) {
            loop->Post(std::move(closure));
          }});
}

void SameHost::Stop() {
  std::vector<std::shared_ptr<SameHostLink>> links;
  std::shared_ptr<SameHostAcceptor> acceptor;
  {
    async::MutexLock lock(&mutex_);
    stopped_ = true;
    acceptor = std::move(acceptor_);
    for (const Link& known : links_) {
      if (auto link = known.link.lock()) links.push_back(std::move(link));
    }
    links_.clear();
  }
  if (acceptor != nullptr) acceptor->Close();
  for (const auto& link : links) {
    link->Close(absl::UnavailableError("the worker is shutting down"));
  }
}

void SameHost::Shutdown() {
  Stop();
  std::shared_ptr<ipc::EventLoop> loop;
  {
    async::MutexLock lock(&mutex_);
    loop = loop_;
  }
  if (loop != nullptr) loop->Shutdown();
}

}  // namespace hawser::rpc

#include "collectives/gloo/mesh.h"

#include <net/if.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <exception>
#include <span>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "async/status_macros.h"
#include "collectives/gloo/gloo_timeout.h"
#include "collectives/gloo/rank_record.h"
#include "collectives/gloo/transfer.h"
#include "gloo/transport/address.h"
#include "gloo/transport/pair.h"
#include "gloo/transport/tcp/device.h"

namespace hawser::collectives {
namespace {

using std::chrono::milliseconds;

// For the reply of a rank that is alive.
constexpr absl::Duration kPatience = absl::Seconds(1);
// For a rank that runs and closes its connections to say why: it may ask all
// ranks first, for as long as kPatience.
constexpr absl::Duration kReasonPatience = absl::Seconds(5);
constexpr uint64_t kControlSlot = 0;
constexpr size_t kFrameBytes = sizeof(Mesh::Frame) + Mesh::kInlineBytes;

async::MonotonicTime Now() { return std::chrono::steady_clock::now(); }

// Closes all connections: Gloo does so when a wait passes its timeout.
void Close(gloo::transport::Context& context) {
  std::byte byte{};
  try {
    context.createUnboundBuffer(&byte, 1)->waitRecv(nullptr, milliseconds(0));
  } catch (const std::exception&) {
  }
}

// A write to a closed connection would end the process.
void IgnoreSigpipe() {
  struct sigaction action {};
  if (sigaction(SIGPIPE, nullptr, &action) == 0 &&
      action.sa_handler == SIG_DFL) {
    signal(SIGPIPE, SIG_IGN);
  }
}

}  // namespace

struct Mesh::OutgoingFrame {
  std::string bytes;
  std::unique_ptr<gloo::transport::UnboundBuffer> buffer;
};

struct Mesh::Peer {
  int rank = 0;
  std::thread thread;
  std::vector<std::byte> incoming = std::vector<std::byte>(kFrameBytes + 8);
  std::unique_ptr<gloo::transport::UnboundBuffer> buffer;

  async::Mutex mutex;
  uint64_t num_received ABSL_GUARDED_BY(mutex) = 0;
  uint64_t num_taken ABSL_GUARDED_BY(mutex) = 0;
  // Frames that the rank may not have received.
  std::deque<OutgoingFrame> outgoing ABSL_GUARDED_BY(mutex);

  // Guarded by the mutex of the mesh.
  bool has_acknowledged = false;
  bool has_left = false;
  bool is_closed = false;
  bool is_alive = false;
  uint64_t num_begun = 0;
};

absl::StatusOr<std::unique_ptr<Mesh>> Mesh::Connect(store::Store& store,
                                                    const Options& options,
                                                    absl::Duration timeout) {
  if (options.size < 1 || options.rank < 0 || options.rank >= options.size) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no rank ", options.rank, " of ", options.size));
  }
  // Gloo leaks memory if there is none.
  if (!options.interface.empty() &&
      if_nametoindex(options.interface.c_str()) == 0) {
    return absl::UnavailableError(
        absl::StrCat("there is no network interface ", options.interface));
  }
  const async::MonotonicTime deadline = async::AddDelay(Now(), timeout);
  IgnoreSigpipe();
  int connecting = -1;
  try {
    gloo::transport::tcp::attr attr;
    if (options.interface.empty()) {
      attr.hostname = options.host;
    } else {
      attr.iface = options.interface;
    }
    auto device = gloo::transport::tcp::CreateDevice(attr);
    auto data = device->createContext(options.rank, options.size);
    auto control = device->createContext(options.rank, options.size);
    // Gloo gives a connection five times its timeout to be made.
    const milliseconds patience =
        std::max(milliseconds(1), GlooTimeout(deadline) / 5);
    data->setTimeout(patience);
    control->setTimeout(patience);
    std::vector<PairAddresses> own(static_cast<size_t>(options.size));
    for (int other = 0; other < options.size; ++other) {
      if (other == options.rank) continue;
      PairAddresses& to = own[static_cast<size_t>(other)];
      to.data = data->createPair(other)->address().bytes();
      to.control = control->createPair(other)->address().bytes();
    }
    ASSIGN_OR_RETURN(const std::vector<RankRecord> records,
                     ExchangeRecords(store, options.rank,
                                     {.machine = options.machine,
                                      .addresses = std::move(own)},
                                     timeout));
    std::vector<std::string> machines;
    for (const RankRecord& record : records) {
      machines.push_back(record.machine);
    }
    for (int other = 0; other < options.size; ++other) {
      if (other == options.rank) continue;
      connecting = other;
      const PairAddresses& to =
          records[static_cast<size_t>(other)]
              .addresses[static_cast<size_t>(options.rank)];
      data->getPair(other)->connect(to.data);
      control->getPair(other)->connect(to.control);
    }
    return std::unique_ptr<Mesh>(new Mesh(options, std::move(machines),
                                          std::move(device), std::move(data),
                                          std::move(control)));
  } catch (const std::exception& error) {
    if (connecting < 0) {
      return absl::UnavailableError(
          absl::StrCat("cannot listen for the other ranks: ", error.what()));
    }
    return absl::Status(Now() >= deadline ? absl::StatusCode::kDeadlineExceeded
                                          : absl::StatusCode::kUnavailable,
                        absl::StrCat("cannot connect to rank ", connecting,
                                     ": ", error.what()));
  }
}

Mesh::Mesh(const Options& options, std::vector<std::string> machines,
           std::shared_ptr<gloo::transport::Device> device, Contexts data,
           Contexts control)
    : options_(options),
      machines_(std::move(machines)),
      device_(std::move(device)),
      data_(std::move(data)),
      control_(std::move(control)) {
  for (int other = 0; other < size(); ++other) {
    peers_.push_back(std::make_unique<Peer>());
    peers_.back()->rank = other;
  }
}

void Mesh::Start(OnFrame on_frame, OnFailure on_failure) {
  on_frame_ = std::move(on_frame);
  on_failure_ = std::move(on_failure);
  for (auto& peer : peers_) {
    if (peer->rank == rank()) continue;
    peer->buffer = control_->createUnboundBuffer(peer->incoming.data(),
                                                 peer->incoming.size());
    peer->thread = std::thread([this, &peer] { Receive(*peer); });
  }
}

void Mesh::Stop() {
  const async::MutexLock lock(&mutex_);
  stopped_ = true;
  while (num_handling_ > 0) changed_.Wait(&mutex_);
}

Mesh::~Mesh() {
  {
    // A connection delivers in order: who gets this byte has all before it.
    std::byte mark{};
    std::vector<std::unique_ptr<Transfer>> marks;
    for (auto& peer : peers_) {
      if (peer->rank == rank()) continue;
      marks.push_back(std::make_unique<Transfer>(
          *this, Transfer::Direction::kSend, peer->rank, MutableBytes(&mark, 1),
          Transfer::Use::kDrain, 0));
    }
    if (failure().ok()) SendToAll(FrameKind::kLeave, "");
    WaitForAcknowledgements();
    {
      const async::MutexLock lock(&mutex_);
      closing_ = true;
    }
    Close(*data_);
  }
  for (auto& peer : peers_) {
    if (peer->buffer != nullptr) peer->buffer->abortWaitRecv();
  }
  Close(*control_);
  {
    const async::MutexLock lock(&mutex_);
    for (Transfer* transfer : transfers_) transfer->Interrupt();
  }
  for (auto& peer : peers_) {
    if (peer->thread.joinable()) peer->thread.join();
  }
  peers_.clear();
}

void Mesh::SendToAll(FrameKind kind, std::string_view text) {
  text = text.substr(0, kInlineBytes);
  for (auto& peer : peers_) {
    if (peer->rank == rank()) continue;
    SendFrame(peer->rank, {.kind = kind, .bytes = text.size()},
              std::as_bytes(std::span(text)));
  }
}

void Mesh::SendFrame(int to, const Frame& frame, ConstBytes text) {
  Peer& peer = *peers_[static_cast<size_t>(to)];
  const async::MutexLock lock(&peer.mutex);
  OutgoingFrame out;
  out.bytes.append(reinterpret_cast<const char*>(&peer.num_received),
                   sizeof(uint64_t));
  out.bytes.append(reinterpret_cast<const char*>(&frame), sizeof(Frame));
  out.bytes.append(reinterpret_cast<const char*>(text.data()), text.size());
  try {
    // The bytes stay at their place in the queue.
    peer.outgoing.push_back(std::move(out));
    OutgoingFrame& queued = peer.outgoing.back();
    queued.buffer =
        control_->createUnboundBuffer(queued.bytes.data(), queued.bytes.size());
    queued.buffer->send(to, kControlSlot);
  } catch (const std::exception&) {
    // The thread of the rank finds the connection closed.
  }
}

void Mesh::Receive(Peer& peer) {
  while (ReceiveFrame(peer)) {
  }
  bool died = false;
  {
    const async::MutexLock lock(&mutex_);
    died = !closing_ && !peer.has_left;
    peer.is_closed = true;
    changed_.NotifyAll();
  }
  if (died) {
    (void)Fail(absl::UnavailableError(
        absl::StrCat("rank ", peer.rank, " has died or cannot be reached")));
  }
}

bool Mesh::ReceiveFrame(Peer& peer) {
  try {
    peer.buffer->recv(peer.rank, kControlSlot);
    while (!peer.buffer->waitRecv(nullptr, kGlooForever)) {
      const async::MutexLock lock(&mutex_);
      if (closing_) return false;
    }
  } catch (const std::exception&) {
    return false;
  }
  uint64_t num_taken = 0;
  Frame frame;
  std::memcpy(&num_taken, peer.incoming.data(), sizeof(uint64_t));
  std::memcpy(&frame, peer.incoming.data() + sizeof(uint64_t), sizeof(Frame));
  {
    const async::MutexLock lock(&peer.mutex);
    ++peer.num_received;
    while (peer.num_taken < num_taken && !peer.outgoing.empty()) {
      peer.outgoing.pop_front();
      ++peer.num_taken;
    }
  }
  Handle(peer, frame,
         ConstBytes(peer.incoming)
             .subspan(sizeof(uint64_t) + sizeof(Frame),
                      frame.bytes > kInlineBytes ? 0 : frame.bytes));
  return true;
}

void Mesh::Handle(Peer& peer, const Frame& frame, ConstBytes text) {
  switch (frame.kind) {
    case FrameKind::kLeave:
    case FrameKind::kAbort: {
      if (frame.kind == FrameKind::kLeave) {
        DrainData(peer);
      } else {
        (void)Fail(absl::AbortedError(
            absl::StrCat("rank ", peer.rank, " has ended the group: ",
                         std::string(reinterpret_cast<const char*>(text.data()),
                                     text.size()))));
      }
      {
        const async::MutexLock lock(&mutex_);
        peer.has_left = true;
        changed_.NotifyAll();
      }
      SendFrame(peer.rank, {.kind = FrameKind::kAcknowledge}, {});
      return;
    }
    case FrameKind::kAcknowledge: {
      const async::MutexLock lock(&mutex_);
      peer.has_acknowledged = true;
      changed_.NotifyAll();
      return;
    }
    case FrameKind::kProbe:
      SendFrame(peer.rank,
                {.kind = FrameKind::kAlive,
                 .number = num_begun_.load(std::memory_order_relaxed)},
                {});
      return;
    case FrameKind::kAlive: {
      const async::MutexLock lock(&mutex_);
      peer.is_alive = true;
      peer.num_begun = frame.number;
      changed_.NotifyAll();
      return;
    }
    case FrameKind::kMessage:
    case FrameKind::kReceived:
      break;
  }
  {
    const async::MutexLock lock(&mutex_);
    if (stopped_) return;
    ++num_handling_;
  }
  on_frame_(peer.rank, frame, text);
  const async::MutexLock lock(&mutex_);
  --num_handling_;
  changed_.NotifyAll();
}

void Mesh::DrainData(Peer& peer) {
  std::byte mark{};
  Transfer transfer(*this, Transfer::Direction::kReceive, peer.rank,
                    MutableBytes(&mark, 1), Transfer::Use::kDrain, 0);
  try {
    if (transfer.posted_) (void)transfer.WaitFor(kGlooForever);
  } catch (const std::exception&) {
  }
}

void Mesh::WaitForAcknowledgements() {
  const async::MonotonicTime deadline = async::AddDelay(Now(), kPatience);
  const async::MutexLock lock(&mutex_);
  const auto waiting = [this] {
    return std::any_of(peers_.begin(), peers_.end(), [this](const auto& peer) {
      return peer->rank != rank() && !peer->has_acknowledged &&
             !peer->is_closed;
    });
  };
  while (waiting()) {
    if (!changed_.WaitUntil(&mutex_, deadline)) return;
  }
}

absl::Status Mesh::failure() const {
  const async::MutexLock lock(&mutex_);
  return failure_;
}

absl::Status Mesh::Fail(const absl::Status& status) {
  bool handle = false;
  {
    const async::MutexLock lock(&mutex_);
    if (!failure_.ok()) return failure_;
    failure_ = status;
    for (Transfer* transfer : transfers_) transfer->Interrupt();
    handle = !stopped_;
    if (handle) ++num_handling_;
    changed_.NotifyAll();
  }
  SendToAll(FrameKind::kAbort, std::string(status.message()));
  Close(*data_);
  if (!handle) return status;
  on_failure_(status);
  const async::MutexLock lock(&mutex_);
  --num_handling_;
  changed_.NotifyAll();
  return status;
}

Mesh::Replies Mesh::ProbeAll() {
  for (const auto& peer : peers_) {
    if (peer->rank == rank()) continue;
    SendFrame(peer->rank, {.kind = FrameKind::kProbe}, {});
  }
  const async::MonotonicTime deadline = async::AddDelay(Now(), kPatience);
  const uint64_t num_begun = num_begun_.load(std::memory_order_relaxed);
  Replies replies;
  const async::MutexLock lock(&mutex_);
  do {
    replies = {};
    for (const auto& peer : peers_) {
      if (peer->rank == rank() || peer->has_left) continue;
      if (!peer->is_alive) replies.silent.insert(peer->rank);
      if (peer->num_begun < num_begun) replies.behind.insert(peer->rank);
    }
  } while (!replies.silent.empty() && failure_.ok() &&
           changed_.WaitUntil(&mutex_, deadline));
  return replies;
}

absl::Status Mesh::LateError(const std::set<int>& late) {
  const Replies replies = ProbeAll();
  const std::set<int>& at_fault = !replies.silent.empty()   ? replies.silent
                                  : !replies.behind.empty() ? replies.behind
                                                            : late;
  return absl::DeadlineExceededError(absl::StrCat(
      "rank ", absl::StrJoin(at_fault, ", "), " did not take part in time"));
}

absl::Status Mesh::NameSilentRanks(const absl::Status& late) {
  const std::set<int> silent = ProbeAll().silent;
  if (silent.empty()) return late;
  return absl::Status(
      late.code(),
      absl::StrCat(std::string(late.message()), "; rank ",
                   absl::StrJoin(silent, ", "),
                   silent.size() == 1 ? " does" : " do", " not react"));
}

absl::Status Mesh::ReasonOf(int peer) {
  const async::MonotonicTime deadline = async::AddDelay(Now(), kReasonPatience);
  bool has_left = false;
  {
    const Peer& of = *peers_[static_cast<size_t>(peer)];
    const async::MutexLock lock(&mutex_);
    while (failure_.ok() && !of.has_left) {
      if (!changed_.WaitUntil(&mutex_, deadline)) break;
    }
    if (!failure_.ok()) return failure_;
    has_left = of.has_left;
  }
  if (has_left) {
    return Fail(
        absl::AbortedError(absl::StrCat("rank ", peer, " has left the group")));
  }
  return Fail(absl::UnavailableError(
      absl::StrCat("rank ", peer, " has closed its connection")));
}

bool Mesh::Register(Transfer* transfer) {
  const async::MutexLock lock(&mutex_);
  if (!failure_.ok()) return false;
  transfers_.insert(transfer);
  return true;
}

void Mesh::Unregister(Transfer* transfer) {
  const async::MutexLock lock(&mutex_);
  transfers_.erase(transfer);
}

}  // namespace hawser::collectives

#include "rpc/grpc/connection.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "async/cpu_relax.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "net/grpc/completion_event.h"
#include "net/in_fragments.h"
#include "rpc/errors/not_sent.h"
#include "rpc/grpc/byte_buffer.h"
#include "rpc/grpc/fragments/message_fragments.h"
#include "rpc/grpc/grpc_time.h"
#include "rpc/grpc/poller.h"
#include "rpc/grpc/status.h"

namespace hawser::rpc {
namespace {

// Less than a server allows per channel (kMaxConcurrentStreams).
constexpr int kMaxCallsPerSlot = 200;
constexpr size_t kMaxSlots = 64;

absl::Status TooLong(size_t size, size_t limit) {
  return absl::ResourceExhaustedError(
      absl::StrCat("a message of ", size, " bytes exceeds the limit of ", limit,
                   " bytes; raise GrpcTransportOptions::max_message_bytes at "
                   "both ends"));
}

}  // namespace

// One call; deletes itself when it has ended.
class GrpcConnection::ActiveCall {
 public:
  ActiveCall(std::shared_ptr<GrpcConnection> connection, Done done)
      : connection_(std::move(connection)), done_(std::move(done)) {}
  virtual ~ActiveCall() = default;

  void set_place(CallId id, ChannelSlot* slot) {
    id_ = id;
    slot_ = slot;
  }

  // The call may end, and this object be deleted, before this returns.
  void Begin(std::string path, Payload request, async::MonotonicTime deadline) {
    if (deadline != async::kNever) {
      context_.set_deadline(ToGrpcTime(deadline));
    }
    connection_->verification_->credentials().Sign(context_);
    Start(*slot_->stub, connection_->poller_.queue(), std::move(path),
          std::move(request));
  }

  Done TakeDone() { return std::move(done_); }

  void Cancel() {
    cancelled_.store(true, std::memory_order_relaxed);
    context_.TryCancel();
  }

  // The completion event of the reply; null if a spinning caller cannot expect
  // it.
  virtual const net::CompletionEvent* reply() const { return nullptr; }

 protected:
  virtual void Start(::grpc::GenericStub& stub, ::grpc::CompletionQueue* queue,
                     std::string path, Payload request) = 0;

  // Reports the status to the caller. Called once; the connection may be
  // destroyed afterwards.
  void End() {
    const std::optional<absl::Status> closed = connection_->Forget(id_, slot_);
    if (status_.ok()) connection_->verification_->NoteAnswer();
    absl::StatusOr<Payload> result =
        status_.ok() ? ToPayload(reply_) : Error(closed);
    Done done = std::move(done_);
    const std::shared_ptr<GrpcConnection> connection = std::move(connection_);
    Release();
    std::move(done)(std::move(result));
    connection->num_done_.fetch_add(1, std::memory_order_release);
  }

  // Deletes this object unless an event is still pending.
  virtual void Release() = 0;

  ::grpc::ClientContext context_;
  ::grpc::ByteBuffer reply_;
  ::grpc::Status status_;

 private:
  // gRPC uses this message for calls that never had a connection. Other
  // messages do not prove that the request was not sent.
  bool FoundNoConnection() const {
    return status_.error_code() == ::grpc::StatusCode::UNAVAILABLE &&
           status_.error_details().empty() &&
           absl::StartsWith(status_.error_message(),
                            "failed to connect to all addresses");
  }

  absl::Status Error(const std::optional<absl::Status>& closed) const {
    if (FoundNoConnection()) return MarkNotSent(ErrorOfPeer(closed));
    return ErrorOfPeer(closed);
  }

  absl::Status ErrorOfPeer(const std::optional<absl::Status>& closed) const {
    if (closed.has_value() &&
        status_.error_code() == ::grpc::StatusCode::CANCELLED) {
      return *closed;
    }
    absl::Status error =
        connection_->verification_->Explain(FromGrpcStatus(status_));
    ClearNotSent(error);
    // A server that shuts down drops unread calls this way.
    if (absl::IsCancelled(error) && status_.error_details().empty() &&
        !cancelled_.load(std::memory_order_relaxed)) {
      return absl::UnavailableError("the peer dropped the call");
    }
    if (absl::IsResourceExhausted(error) &&
        absl::StrContains(error.message(), "larger than max")) {
      return absl::ResourceExhaustedError(absl::StrCat(
          error.message(), "; raise GrpcTransportOptions::max_message_bytes"));
    }
    return error;
  }

  std::shared_ptr<GrpcConnection> connection_;
  CallId id_ = 0;
  ChannelSlot* slot_ = nullptr;
  Done done_;
  std::atomic<bool> cancelled_{false};
};

// A call whose request is one message.
class GrpcConnection::UnaryClientCall final : public ActiveCall,
                                              public net::CompletionEvent {
 public:
  using ActiveCall::ActiveCall;

  const net::CompletionEvent* reply() const override { return this; }
  void OnEvent(bool) override { End(); }

 private:
  void Start(::grpc::GenericStub& stub, ::grpc::CompletionQueue* queue,
             std::string path, Payload request) override {
    reader_ =
        stub.PrepareUnaryCall(&context_, path, ToByteBuffer(request), queue);
    reader_->StartCall();
    reader_->Finish(&reply_, &status_,
                    static_cast<net::CompletionEvent*>(this));
  }
  void Release() override { delete this; }

  // Allocated in the arena of the call, which the context keeps alive.
  std::unique_ptr<::grpc::ClientAsyncResponseReader<::grpc::ByteBuffer>>
      reader_;
};

// A call whose request is sent in fragments, one after the other
// (proto/fragments.proto). A worker that rejects the request replies before the
// last fragment.
class GrpcConnection::FragmentedClientCall final : public ActiveCall {
 public:
  FragmentedClientCall(const std::shared_ptr<GrpcConnection>& connection,
                       Done done)
      : ActiveCall(connection, std::move(done)), gate_(connection->gate_) {}

 private:
  struct Event final : public net::CompletionEvent {
    using Callback = void (FragmentedClientCall::*)(bool);
    Event(FragmentedClientCall* event_call, Callback event_callback)
        : call(event_call), callback(event_callback) {}
    void OnEvent(bool ok) override { (call->*callback)(ok); }

    FragmentedClientCall* const call;
    const Callback callback;
  };

  void Start(::grpc::GenericStub& stub, ::grpc::CompletionQueue* queue,
             std::string path, Payload request) override {
    fragments_.emplace(std::move(request));
    // Send the metadata with the first fragment.
    context_.set_initial_metadata_corked(true);
    stream_ =
        stub.PrepareCall(&context_, path.append(net::kInFragments), queue);
    stream_->StartCall(nullptr);
    // One for the fragment being written and one for the reply.
    references_.store(2, std::memory_order_relaxed);
    ::grpc::ByteBuffer first = fragments_->Next();
    // Started before any event can end the call; nothing here may be accessed
    // afterwards.
    stream_->Read(&reply_, &read_);
    Write(first);
  }

  void Write(const ::grpc::ByteBuffer& fragment) {
    if (fragments_->AtEnd()) {
      stream_->WriteLast(fragment, ::grpc::WriteOptions(), &written_);
    } else {
      // The transport requests the next fragment before this one is fully sent.
      stream_->Write(fragment, ::grpc::WriteOptions().set_buffer_hint(),
                     &written_);
    }
  }
  // Once the gate is closed, the call is cancelled and no operation may be
  // started.
  void OnWritten(bool ok) {
    Gate::Entry entry(gate_.get());
    if (entry && ok && !fragments_->AtEnd()) {
      Write(fragments_->Next());
    } else {
      Release();
    }
  }
  void OnRead(bool) {
    {
      Gate::Entry entry(gate_.get());
      if (entry) {
        stream_->Finish(&status_, &finished_);
        return;
      }
    }
    status_ = ::grpc::Status(::grpc::StatusCode::CANCELLED,
                             "the transport was shut down");
    End();
  }
  void OnFinished(bool) { End(); }

  void Release() override {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  Event written_{this, &FragmentedClientCall::OnWritten};
  Event read_{this, &FragmentedClientCall::OnRead};
  Event finished_{this, &FragmentedClientCall::OnFinished};
  const std::shared_ptr<Gate> gate_;
  std::atomic<int> references_{0};
  std::optional<MessageFragments> fragments_;
  // Allocated in the arena of the call, which the context keeps alive.
  std::unique_ptr<::grpc::GenericClientAsyncReaderWriter> stream_;
};

GrpcConnection::GrpcConnection(
    MakeChannel make_channel, Poller* poller, std::shared_ptr<Gate> gate,
    std::shared_ptr<const net::PeerVerification> verification,
    size_t max_message_bytes, absl::Duration spin)
    : make_channel_(std::move(make_channel)),
      poller_(*poller),
      gate_(std::move(gate)),
      verification_(std::move(verification)),
      max_message_bytes_(max_message_bytes),
      spin_(spin) {}

// Calls keep their connection alive, so there are none left.
GrpcConnection::~GrpcConnection() = default;

GrpcConnection::ChannelSlot& GrpcConnection::AddSlotLocked() {
  slots_.push_back(std::make_unique<ChannelSlot>(
      ChannelSlot{std::make_unique<::grpc::GenericStub>(make_channel_())}));
  return *slots_.back();
}

::grpc::GenericStub& GrpcConnection::first_stub() {
  async::MutexLock lock(&mutex_);
  return *(slots_.empty() ? AddSlotLocked() : *slots_.front()).stub;
}

GrpcConnection::ChannelSlot* GrpcConnection::PickSlotLocked() {
  for (const auto& slot : slots_) {
    if (slot->num_calls < kMaxCallsPerSlot) return slot.get();
  }
  if (slots_.size() < kMaxSlots) return &AddSlotLocked();
  return std::min_element(slots_.begin(), slots_.end(),
                          [](const auto& a, const auto& b) {
                            return a->num_calls < b->num_calls;
                          })
      ->get();
}

Connection::CallId GrpcConnection::Call(std::string_view path, Payload request,
                                        async::MonotonicTime deadline,
                                        Done done) {
  absl::Status refused;
  CallId id = 0;
  if (request.size() > max_message_bytes_) {
    refused = TooLong(request.size(), max_message_bytes_);
  } else if (Gate::Entry entry(gate_.get()); !entry) {
    refused = absl::CancelledError("the transport was shut down");
  } else if (refused = request.FetchAll(); refused.ok()) {
    std::unique_ptr<ActiveCall> call = MakeCall(request, std::move(done));
    bool open = false;
    {
      async::MutexLock lock(&mutex_);
      id = ++last_id_;
      open = !closed_.has_value();
      if (open) {
        ChannelSlot* slot = PickSlotLocked();
        ++slot->num_calls;
        call->set_place(id, slot);
        calls_.emplace(id, call.get());
      } else {
        refused = *closed_;
      }
    }
    if (open) {
      call.release()->Begin(std::string(path), std::move(request), deadline);
      return id;
    }
    done = call->TakeDone();
  }
  std::move(done)(MarkNotSent(std::move(refused)));
  return id;
}

std::optional<absl::Status> GrpcConnection::Forget(CallId id,
                                                   ChannelSlot* slot) {
  async::MutexLock lock(&mutex_);
  --slot->num_calls;
  calls_.erase(id);
  return closed_;
}

void GrpcConnection::Cancel(CallId id) {
  async::MutexLock lock(&mutex_);
  auto it = calls_.find(id);
  // A call is not deleted while the lock is held.
  if (it != calls_.end()) it->second->Cancel();
}

std::unique_ptr<GrpcConnection::ActiveCall> GrpcConnection::MakeCall(
    const Payload& request, Done done) {
  if (request.size() <= kMaxWholeRequest) {
    return std::make_unique<UnaryClientCall>(shared_from_this(),
                                             std::move(done));
  }
  return std::make_unique<FragmentedClientCall>(shared_from_this(),
                                                std::move(done));
}

const net::CompletionEvent* GrpcConnection::ReplyOf(CallId id) {
  async::MutexLock lock(&mutex_);
  const auto it = calls_.find(id);
  return it == calls_.end() ? nullptr : it->second->reply();
}

void GrpcConnection::AwaitReply(CallId id, absl::FunctionRef<bool()> stop) {
  if (spin_ <= absl::ZeroDuration()) return;
  const net::CompletionEvent* const reply = ReplyOf(id);
  if (reply == nullptr) return;
  Gate::Entry entry(gate_.get());
  if (!entry) return;
  const auto pending = [&] { return !stop() && ReplyOf(id) == reply; };
  if (poller_.PollsInThisThread()) {
    (void)poller_.PollInEvent(reply, pending);
    return;
  }
  if (!spin_policy_.Begin()) return;
  const async::MonotonicTime end =
      async::AddDelay(std::chrono::steady_clock::now(), spin_);
  Poller::Polled polled = Poller::Polled::kByThreads;
  do {
    polled = poller_.PollFor(reply, pending, spin_);
    if (polled != Poller::Polled::kByThreads) break;
    poller_.set_awaited(reply);
    SpinUntilDone(id, end, stop);
    poller_.set_awaited(nullptr);
  } while (pending() && std::chrono::steady_clock::now() < end);
  spin_policy_.End();
}

void GrpcConnection::SpinUntilDone(CallId id, async::MonotonicTime end,
                                   absl::FunctionRef<bool()> stop) {
  uint64_t seen = num_done_.load(std::memory_order_acquire);
  bool arrived = ReplyOf(id) == nullptr;
  while (!arrived && !stop() && !poller_.yielded() &&
         std::chrono::steady_clock::now() < end) {
    async::CpuRelax();
    const uint64_t done = num_done_.load(std::memory_order_acquire);
    if (done == seen) continue;
    seen = done;
    arrived = ReplyOf(id) == nullptr;
  }
}

void GrpcConnection::Close(absl::Status status) {
  async::MutexLock lock(&mutex_);
  if (!closed_.has_value()) closed_ = std::move(status);
  for (const auto& [id, call] : calls_) call->Cancel();
}

}  // namespace hawser::rpc

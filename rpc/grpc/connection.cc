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
#include "rpc/grpc/byte_buffer.h"
#include "rpc/grpc/poller.h"
#include "rpc/grpc/status.h"
#include "rpc/unsent.h"

namespace hawser::rpc {
namespace {

// Below what a server allows per channel (kMaxConcurrentStreams).
constexpr int kMaxCallsPerLane = 200;
constexpr size_t kMaxLanes = 64;

gpr_timespec ToGrpcTime(async::MonotonicTime time) {
  // gRPC's monotonic clock is the one of steady_clock.
  const int64_t nanoseconds =
      std::chrono::duration_cast<std::chrono::nanoseconds>(
          time.time_since_epoch())
          .count();
  return {.tv_sec = nanoseconds / 1'000'000'000,
          .tv_nsec = static_cast<int32_t>(nanoseconds % 1'000'000'000),
          .clock_type = GPR_CLOCK_MONOTONIC};
}

absl::Status TooLong(size_t size, size_t limit) {
  return absl::ResourceExhaustedError(
      absl::StrCat("a message of ", size, " bytes exceeds the limit of ", limit,
                   " bytes; raise GrpcTransportOptions::max_message_bytes at "
                   "both ends"));
}

}  // namespace

// One call; deletes itself when it has ended.
class GrpcConnection::ActiveCall final : public CompletionEvent {
 public:
  ActiveCall(std::shared_ptr<GrpcConnection> connection, Done done)
      : connection_(std::move(connection)), done_(std::move(done)) {}

  void set_place(CallId id, Lane* lane) {
    id_ = id;
    lane_ = lane;
  }

  void Begin(const std::string& path, const Payload& request,
             async::MonotonicTime deadline) {
    if (deadline != async::kNever) {
      context_.set_deadline(ToGrpcTime(deadline));
    }
    connection_->verification_->credentials().Sign(context_);
    reader_ = lane_->stub->PrepareUnaryCall(
        &context_, path, ToByteBuffer(request), connection_->queue_);
    reader_->StartCall();
    // The call may end, and this be gone, before this returns.
    reader_->Finish(&reply_, &status_, this);
  }

  Done TakeDone() { return std::move(done_); }

  void Cancel() { context_.TryCancel(); }

  void OnEvent(bool) override {
    std::unique_ptr<ActiveCall> self(this);
    const std::optional<absl::Status> closed = connection_->Forget(id_, lane_);
    if (status_.ok()) connection_->verification_->NoteAnswer();
    absl::StatusOr<Payload> result =
        status_.ok() ? ToPayload(reply_) : Error(closed);
    Done done = std::move(done_);
    const std::shared_ptr<GrpcConnection> connection = std::move(connection_);
    self.reset();
    std::move(done)(std::move(result));
    connection->num_done_.fetch_add(1, std::memory_order_release);
  }

 private:
  // gRPC says so, in these words, of calls that were given no connection; what
  // it says of others is not known to be safe.
  bool FoundNoConnection() const {
    return status_.error_code() == ::grpc::StatusCode::UNAVAILABLE &&
           status_.error_details().empty() &&
           absl::StartsWith(status_.error_message(),
                            "failed to connect to all addresses");
  }

  absl::Status Error(const std::optional<absl::Status>& closed) const {
    if (FoundNoConnection()) return MarkUnsent(ErrorOfPeer(closed));
    return ErrorOfPeer(closed);
  }

  absl::Status ErrorOfPeer(const std::optional<absl::Status>& closed) const {
    if (closed.has_value() &&
        status_.error_code() == ::grpc::StatusCode::CANCELLED) {
      return *closed;
    }
    absl::Status error =
        connection_->verification_->Explain(FromGrpcStatus(status_));
    ClearUnsent(error);
    if (absl::IsResourceExhausted(error) &&
        absl::StrContains(error.message(), "larger than max")) {
      return absl::ResourceExhaustedError(absl::StrCat(
          error.message(), "; raise GrpcTransportOptions::max_message_bytes"));
    }
    return error;
  }

  // Destroyed in reverse order: the reader lives in memory of the call that
  // the context holds.
  const std::shared_ptr<GrpcConnection> connection_;
  CallId id_ = 0;
  Lane* lane_ = nullptr;
  Done done_;
  ::grpc::ClientContext context_;
  ::grpc::ByteBuffer reply_;
  ::grpc::Status status_;
  std::unique_ptr<::grpc::ClientAsyncResponseReader<::grpc::ByteBuffer>>
      reader_;
};

GrpcConnection::GrpcConnection(
    MakeChannel make_channel, ::grpc::CompletionQueue* queue,
    std::shared_ptr<Gate> gate,
    std::shared_ptr<const net::PeerVerification> verification,
    size_t max_message_bytes, absl::Duration spin)
    : make_channel_(std::move(make_channel)),
      queue_(queue),
      gate_(std::move(gate)),
      verification_(std::move(verification)),
      max_message_bytes_(max_message_bytes),
      spin_(spin) {}

// Calls keep their connection: there are none.
GrpcConnection::~GrpcConnection() = default;

GrpcConnection::Lane* GrpcConnection::PickLaneLocked() {
  for (const auto& lane : lanes_) {
    if (lane->num_calls < kMaxCallsPerLane) return lane.get();
  }
  if (lanes_.size() < kMaxLanes) {
    lanes_.push_back(std::make_unique<Lane>(
        Lane{std::make_unique<::grpc::GenericStub>(make_channel_())}));
    return lanes_.back().get();
  }
  return std::min_element(lanes_.begin(), lanes_.end(),
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
  } else if (Gate::Pass pass(gate_.get()); !pass) {
    refused = absl::CancelledError("the transport was shut down");
  } else if (refused = request.FetchAll(); refused.ok()) {
    auto call =
        std::make_unique<ActiveCall>(shared_from_this(), std::move(done));
    bool open = false;
    {
      async::MutexLock lock(&mutex_);
      id = ++last_id_;
      open = !closed_.has_value();
      if (open) {
        Lane* lane = PickLaneLocked();
        ++lane->num_calls;
        call->set_place(id, lane);
        calls_.emplace(id, call.get());
      } else {
        refused = *closed_;
      }
    }
    if (open) {
      call.release()->Begin(std::string(path), request, deadline);
      return id;
    }
    done = call->TakeDone();
  }
  std::move(done)(MarkUnsent(std::move(refused)));
  return id;
}

std::optional<absl::Status> GrpcConnection::Forget(CallId id, Lane* lane) {
  async::MutexLock lock(&mutex_);
  --lane->num_calls;
  calls_.erase(id);
  return closed_;
}

void GrpcConnection::Cancel(CallId id) {
  async::MutexLock lock(&mutex_);
  auto it = calls_.find(id);
  // It is not deleted while the lock is held.
  if (it != calls_.end()) it->second->Cancel();
}

bool GrpcConnection::IsActive(CallId id) {
  async::MutexLock lock(&mutex_);
  return calls_.contains(id);
}

void GrpcConnection::AwaitReply(CallId id) {
  if (spin_ <= absl::ZeroDuration() || !spin_policy_.Begin()) return;
  const async::MonotonicTime end =
      async::AddDelay(std::chrono::steady_clock::now(), spin_);
  uint64_t seen = num_done_.load(std::memory_order_acquire);
  bool came = !IsActive(id);
  while (!came && std::chrono::steady_clock::now() < end) {
    async::CpuRelax();
    const uint64_t done = num_done_.load(std::memory_order_acquire);
    if (done == seen) continue;
    seen = done;
    came = !IsActive(id);
  }
  spin_policy_.End(came);
}

void GrpcConnection::Close(absl::Status status) {
  async::MutexLock lock(&mutex_);
  if (!closed_.has_value()) closed_ = std::move(status);
  for (const auto& [id, call] : calls_) call->Cancel();
}

}  // namespace hawser::rpc

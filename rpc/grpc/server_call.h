// One inbound call of a gRPC server, from its registration to its reply.

#ifndef HAWSER_RPC_GRPC_SERVER_CALL_H_
#define HAWSER_RPC_GRPC_SERVER_CALL_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/mutex.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/impl/rpc_method.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/status.h"
#include "net/auth/credentials.h"
#include "net/auth/identity.h"
#include "net/grpc/completion_event.h"
#include "net/per_peer_quota.h"
#include "rpc/grpc/fragments/message_assembler.h"
#include "rpc/grpc/poller.h"
#include "rpc/transport/cancellation.h"
#include "rpc/transport/gate.h"
#include "rpc/transport/payload.h"
#include "rpc/transport/transport.h"

namespace hawser::rpc {

// The methods of one service for gRPC, with messages as raw bytes. gRPC
// delivers a call before its message, also of unary methods: for those that it
// knows as unary, gRPC 1.51 keeps the headers of a call whose message does not
// arrive, which may take any memory, until the next call of the method.
class GrpcMethods final : public ::grpc::Service {
 public:
  // Returns the index of the method.
  int Add(std::string path);

  using ::grpc::Service::RequestAsyncClientStreaming;

 private:
  // gRPC keeps pointers to the paths.
  std::deque<std::string> paths_;
};

class ServerCall;

// The calls that hold gRPC objects. Handlers may keep calls longer than the
// server lives. Thread-safe.
class ServerCallRegistry {
 public:
  // Returns false once closed; the call must not be handled then.
  bool Insert(const std::shared_ptr<ServerCall>& call);
  void Erase(const ServerCall* call);
  void Close();
  std::vector<std::shared_ptr<ServerCall>> calls();
  // Waits for calls that are being destroyed to erase themselves.
  void AwaitEmpty();

 private:
  async::Mutex mutex_;
  async::CondVar empty_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_map<const ServerCall*, std::weak_ptr<ServerCall>> calls_
      ABSL_GUARDED_BY(mutex_);
};

// State shared by the calls of one server.
struct ServerParts {
  ::grpc::ServerCompletionQueue* queue = nullptr;
  // Entered before starting an operation on the queue.
  std::shared_ptr<Gate> gate;
  std::shared_ptr<const net::Credentials> credentials;
  std::shared_ptr<AssemblyBudget> assembly_budget;
  // For replies that callers have not read.
  std::shared_ptr<net::PerPeerQuota> reply_quota;
  size_t max_message_bytes = 0;
  // From GrpcLimits.
  absl::Duration fragment_timeout = absl::InfiniteDuration();
  std::shared_ptr<ServerCallRegistry> registry =
      std::make_shared<ServerCallRegistry>();
};

// One method of a server. Lives until the last event.
struct ServedMethod {
  // Requests the next call from gRPC.
  void RequestNext() const;

  const TransportMethod* method = nullptr;
  // The service and index under which gRPC registered the method.
  GrpcMethods* service = nullptr;
  int number = 0;
  // Whether requests are sent in fragments (proto/fragments.proto).
  bool in_fragments = false;
  std::shared_ptr<const ServerParts> parts;
};

// Steps, each an event:
//
//   arrived  a call, unless the server shuts down; the next one is then
//            requested.
//   read     the message of the request, or its next fragment.
//   stalled  timer: checks whether a fragment has arrived.
//   done     the caller has the reply or cancelled; may occur at any time.
//   sent     the reply was passed to gRPC.
//
// Each pending event holds a reference, as does the handler's handle. gRPC
// objects live as long as this, but at most until Release. Thread-safe.
class ServerCall : public std::enable_shared_from_this<ServerCall> {
 public:
  virtual ~ServerCall() = default;

  // Requests a call from gRPC. Call once.
  void RequestNext();

  // --- For the handler.
  absl::StatusOr<Payload> TakeRequest();
  absl::StatusOr<std::optional<net::Identity>> caller();
  async::MonotonicTime deadline() const { return deadline_; }
  const std::shared_ptr<Cancellation>& cancellation() const {
    return cancellation_;
  }
  // Sends the reply, unless one was sent or gRPC is released.
  void Reply(absl::StatusOr<Payload> reply);

  // --- For the server. The server stops: cancels the call, since its reply is
  // not needed any more.
  void Abort();
  // Releases gRPC's objects after the last event.
  void Release();

 protected:
  struct Event final : public net::CompletionEvent {
    using Callback = void (ServerCall::*)(bool);
    explicit Event(Callback event_callback) : callback(event_callback) {}

    void OnEvent(bool ok) override {
      const std::shared_ptr<ServerCall> call = std::move(self);
      (call.get()->*callback)(ok);
    }

    const Callback callback;
    std::shared_ptr<ServerCall> self;
  };

  explicit ServerCall(const ServedMethod& method)
      : method_(method), parts_(method.parts) {}

  // Removes this from the registry; for destructors, after gRPC's objects are
  // released.
  void Unregister() { parts_->registry->Erase(this); }

  // Operations that depend on the kind of method. Called between RequestNext
  // and Release; `event` is the tag.
  virtual ::grpc::ServerContext& context() = 0;
  virtual void Request(Event* event) = 0;
  virtual void Finish(const ::grpc::ByteBuffer& reply, Event* event) = 0;
  virtual void FinishWithError(const ::grpc::Status& status, Event* event) = 0;
  virtual absl::StatusOr<Payload> TakePayload() = 0;
  // The call has arrived and may be served. Reads the request, and then calls
  // Handle.
  virtual void Begin() = 0;
  virtual void OnRead(bool ok) = 0;
  virtual void OnStalled(bool) {}
  virtual void ReleaseGrpc() = 0;

  void Handle();

  // The caller, for limits.
  std::string Client() { return parts_->credentials->ClientOf(context()); }

  // Destroyed before a handler that outlives the server replies.
  const ServedMethod& method_;
  const std::shared_ptr<const ServerParts> parts_;
  Event read_{&ServerCall::OnRead};
  Event stalled_{&ServerCall::OnStalled};

  async::Mutex mutex_;
  bool replied_ ABSL_GUARDED_BY(mutex_) = false;
  // Of the reply, until it was sent.
  net::PerPeerQuota::Reservation reply_memory_ ABSL_GUARDED_BY(mutex_);
  bool released_ ABSL_GUARDED_BY(mutex_) = false;

 private:
  class HandlerSide;

  void OnArrived(bool ok);
  void OnDone(bool);
  void OnSent(bool);

  const std::shared_ptr<Cancellation> cancellation_ =
      std::make_shared<Cancellation>();
  Event arrived_{&ServerCall::OnArrived};
  Event done_{&ServerCall::OnDone};
  Event sent_{&ServerCall::OnSent};
  async::MonotonicTime deadline_ = async::kNever;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_SERVER_CALL_H_

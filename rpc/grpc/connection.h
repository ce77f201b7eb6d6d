// Client of one address over gRPC.

#ifndef HAWSER_RPC_GRPC_CONNECTION_H_
#define HAWSER_RPC_GRPC_CONNECTION_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/mutex.h"
#include "grpcpp/channel.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"
#include "ipc/spin_policy.h"
#include "net/auth/peer_verification.h"
#include "net/grpc/completion_event.h"
#include "rpc/grpc/poller.h"
#include "rpc/transport/gate.h"
#include "rpc/transport/transport.h"

namespace hawser::rpc {

// Opens channels as needed, since a server limits the concurrent calls per
// channel and long calls must not keep others from starting.
class GrpcConnection final
    : public Connection,
      public std::enable_shared_from_this<GrpcConnection> {
 public:
  using MakeChannel = std::function<std::shared_ptr<::grpc::Channel>()>;

  // `gate` is entered before starting an operation on the queue of `poller`,
  // and closed before the queue is shut down. `verification` created the
  // channels. `spin` limits the spinning of AwaitReply; 0 disables it.
  GrpcConnection(MakeChannel make_channel, Poller* poller,
                 std::shared_ptr<Gate> gate,
                 std::shared_ptr<const net::PeerVerification> verification,
                 size_t max_message_bytes, absl::Duration spin);
  ~GrpcConnection() override;

  CallId Call(std::string_view path, Payload request,
              async::MonotonicTime deadline, Done done) override;
  void Cancel(CallId id) override;
  void Close(absl::Status status) override;
  // A stub of the first channel, for streams.
  ::grpc::GenericStub& first_stub();

  // Avoids the wake-up that is needed if another thread receives the reply.
  void AwaitReply(CallId id, absl::FunctionRef<bool()> stop) override;

 private:
  class ActiveCall;
  class UnaryClientCall;
  class FragmentedClientCall;
  struct ChannelSlot {
    std::unique_ptr<::grpc::GenericStub> stub;
    int num_calls = 0;
  };

  ChannelSlot& AddSlotLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the slot for the next call.
  ChannelSlot* PickSlotLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::unique_ptr<ActiveCall> MakeCall(const Payload& request, Done done);
  // Returns the completion event of the call's reply; null if the call has
  // ended or its request is sent in fragments.
  const net::CompletionEvent* ReplyOf(CallId id);
  // Spins until `end`, until the call has ended, or until the polling threads
  // have yielded.
  void SpinUntilDone(CallId id, async::MonotonicTime end,
                     absl::FunctionRef<bool()> stop);
  // Removes an ended call. Returns the status to use instead of kCancelled, if
  // any.
  std::optional<absl::Status> Forget(CallId id, ChannelSlot* slot);

  const MakeChannel make_channel_;
  Poller& poller_;
  const std::shared_ptr<Gate> gate_;
  const std::shared_ptr<const net::PeerVerification> verification_;
  const size_t max_message_bytes_;
  const absl::Duration spin_;
  ipc::SpinPolicy spin_policy_;
  // Calls whose Done has returned.
  std::atomic<uint64_t> num_done_{0};

  async::Mutex mutex_;
  std::optional<absl::Status> closed_ ABSL_GUARDED_BY(mutex_);
  CallId last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::unique_ptr<ChannelSlot>> slots_ ABSL_GUARDED_BY(mutex_);
  // The calls own themselves.
  absl::flat_hash_map<CallId, ActiveCall*> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_CONNECTION_H_

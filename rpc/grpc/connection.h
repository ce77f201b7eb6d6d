// Calls to one address over gRPC.

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
#include "net/auth/peer_verification.h"
#include "rpc/grpc/poller.h"
#include "rpc/grpc/tuning/spin_policy.h"
#include "rpc/transport/gate.h"
#include "rpc/transport/transport.h"

namespace hawser::rpc {

// Opens channels as needed: a server takes a limited number of calls at once
// per channel, and calls that wait long must not keep others from starting.
class GrpcConnection final
    : public Connection,
      public std::enable_shared_from_this<GrpcConnection> {
 public:
  using MakeChannel = std::function<std::shared_ptr<::grpc::Channel>()>;

  // `gate` is passed by whatever begins an operation on the queue of `poller`;
  // it is closed before that is shut down. `verification` made the channels.
  // `spin`: how long AwaitReply looks at most; 0: not at all.
  GrpcConnection(MakeChannel make_channel, Poller* poller,
                 std::shared_ptr<Gate> gate,
                 std::shared_ptr<const net::PeerVerification> verification,
                 size_t max_message_bytes, absl::Duration spin);
  ~GrpcConnection() override;

  CallId Call(std::string_view path, Payload request,
              async::MonotonicTime deadline, Done done) override;
  void Cancel(CallId id) override;
  void Close(absl::Status status) override;
  // Another thread may take the reply, and would have to wake this one.
  void AwaitReply(CallId id) override;

 private:
  class ActiveCall;
  class UnaryClientCall;
  class FragmentedClientCall;
  struct ChannelSlot {
    std::unique_ptr<::grpc::GenericStub> stub;
    int num_calls = 0;
  };

  // The slot that the next call takes.
  ChannelSlot* PickSlotLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::unique_ptr<ActiveCall> MakeCall(const Payload& request, Done done);
  // What the call's reply comes as; null if the call has ended, or is long.
  const CompletionEvent* ReplyOf(CallId id);
  // Looks for a while whether the call has ended.
  bool SpinUntilDone(CallId id);
  // The call has ended; the status to give instead of kCancelled, if any.
  std::optional<absl::Status> Forget(CallId id, ChannelSlot* slot);

  const MakeChannel make_channel_;
  Poller& poller_;
  const std::shared_ptr<Gate> gate_;
  const std::shared_ptr<const net::PeerVerification> verification_;
  const size_t max_message_bytes_;
  const absl::Duration spin_;
  SpinPolicy spin_policy_;
  // Calls whose Done has returned.
  std::atomic<uint64_t> num_done_{0};

  async::Mutex mutex_;
  std::optional<absl::Status> closed_ ABSL_GUARDED_BY(mutex_);
  CallId last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::unique_ptr<ChannelSlot>> slots_ ABSL_GUARDED_BY(mutex_);
  // Own themselves.
  absl::flat_hash_map<CallId, ActiveCall*> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_CONNECTION_H_

// Client end of call streams.

#ifndef HAWSER_RPC_GRPC_CALL_STREAM_CLIENT_CALL_STREAM_H_
#define HAWSER_RPC_GRPC_CALL_STREAM_CLIENT_CALL_STREAM_H_

#include <memory>

#include "absl/base/thread_annotations.h"
#include "async/mutex.h"
#include "net/auth/peer_verification.h"
#include "rpc/grpc/call_stream/call_stream.h"
#include "rpc/grpc/connection.h"
#include "rpc/link/link_connection.h"

namespace hawser::rpc {

// Opens call streams on the first channel of a connection. Thread-safe.
class CallStreamOpener final : public LinkOpener {
 public:
  CallStreamOpener(std::shared_ptr<GrpcConnection> connection,
                   std::shared_ptr<const net::PeerVerification> verification,
                   CallStream::Options options);
  ~CallStreamOpener() override;

  void Open(Done done) override;
  void Cancel() override;

 private:
  class Opening;

  const std::shared_ptr<GrpcConnection> connection_;
  const std::shared_ptr<const net::PeerVerification> verification_;
  const CallStream::Options options_;

  async::Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  // The stream opened last.
  std::unique_ptr<Opening> opening_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_CALL_STREAM_CLIENT_CALL_STREAM_H_

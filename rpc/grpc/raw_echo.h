// An echo on gRPC's completion queues with nothing above: what agents are
// measured against.

#ifndef HAWSER_RPC_GRPC_RAW_ECHO_H_
#define HAWSER_RPC_GRPC_RAW_ECHO_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>

#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/server.h"
#include "grpcpp/support/byte_buffer.h"

namespace hawser::rpc {

// Serves with one thread and calls with another, over loopback. The methods
// are for one thread.
class RawEcho {
 public:
  RawEcho();
  ~RawEcho();

  // Keeps `in_flight` calls of `bytes` bytes under way until Stop.
  void Start(int in_flight, size_t bytes);
  // Returns when one call more has ended.
  void AwaitOne();
  void Stop();

 private:
  class Service;
  class ServerCall;
  class ClientCall;

  const std::unique_ptr<Service> service_;
  std::unique_ptr<::grpc::ServerCompletionQueue> server_queue_;
  ::grpc::CompletionQueue client_queue_;
  std::unique_ptr<::grpc::Server> server_;
  std::unique_ptr<::grpc::GenericStub> stub_;
  ::grpc::ByteBuffer request_;
  std::thread server_thread_;
  bool stopping_ = false;
  int num_under_way_ = 0;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_RAW_ECHO_H_

// Client of a worker's functions that is not a member of the worker's job.

#ifndef HAWSER_CLI_WORKER_CLIENT_H_
#define HAWSER_CLI_WORKER_CLIENT_H_

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/status.h"
#include "net/auth/credentials.h"
#include "net/auth/peer_verification.h"
#include "proto/rpc.grpc.pb.h"
#include "proto/stream.grpc.pb.h"
#include "rpc/identity/worker_info.h"

namespace hawser::cli {

// A client that calls a worker's functions by name. Each call ends within the
// timeout. Errors are those of the worker, and kUnavailable, which names its
// address.
class WorkerClient {
 public:
  // `source` is the caller's name.
  WorkerClient(rpc::WorkerInfo worker, std::string job, std::string source,
               std::shared_ptr<const net::Credentials> credentials,
               absl::Duration timeout);

  // The worker's functions, sorted by name.
  absl::StatusOr<v1::ListFunctionsReply> ListFunctions();
  // The signature of one function; kNotFound if it does not exist.
  absl::StatusOr<std::string> SignatureOf(const std::string& function);
  // Adds the header to `request` and sends it once, without retries.
  absl::StatusOr<v1::CallReply> Call(v1::CallRequest request);
  // Calls a method of a service of the worker once, without retries, such as
  // &v1::TableService::Stub::ListTables. Adds the header to `request`.
  template <class Stub, class Request, class Reply>
  absl::StatusOr<Reply> CallMethod(
      grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                   Reply*),
      Request request, absl::Duration timeout) {
    *request.mutable_header() = Header();
    Stub stub(channel_);
    Reply reply;
    const absl::Status status = Translate((stub.*method)(
        NewContext(absl::Now() + timeout).get(), request, &reply));
    if (!status.ok()) return status;
    return reply;
  }
  // Calls a function that writes a stream, and passes each value to `take`, in
  // order, as the reply of a call. Returns when the stream has ended, with the
  // function's error, or when `take` returns an error. The timeout applies to
  // the whole stream.
  absl::Status ReadStream(
      v1::CallRequest request,
      absl::FunctionRef<absl::Status(const v1::CallReply&)> take);

 private:
  v1::RequestHeader Header() const;
  std::unique_ptr<grpc::ClientContext> NewContext() const;
  std::unique_ptr<grpc::ClientContext> NewContext(absl::Time deadline) const;
  // Passes the values of the open stream to `take`.
  absl::Status ReadValues(
      absl::Time deadline,
      absl::FunctionRef<absl::Status(const v1::CallReply&)> take);
  absl::Status Translate(const grpc::Status& status) const;

  const rpc::WorkerInfo worker_;
  const std::string job_;
  const std::string source_;
  const absl::Duration timeout_;
  // Distinguishes the streams of this client from those of other clients.
  const rpc::Incarnation incarnation_ = rpc::NewIncarnation();
  const net::PeerVerification verification_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::WorkerService::Stub> stub_;
  const std::unique_ptr<v1::StreamService::Stub> streams_;
};

}  // namespace hawser::cli

#endif  // HAWSER_CLI_WORKER_CLIENT_H_

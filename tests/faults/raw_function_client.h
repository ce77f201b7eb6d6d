// Client of a worker's functions that is not a member of the job.

#ifndef HAWSER_TESTS_FAULTS_RAW_FUNCTION_CLIENT_H_
#define HAWSER_TESTS_FAULTS_RAW_FUNCTION_CLIENT_H_

#include <memory>
#include <string>

#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "proto/rpc.grpc.pb.h"
#include "rpc/functions/function.h"

namespace hawser::tests {

// Destination fields of a request.
struct RawDestination {
  std::string job = {};
  std::string name = {};
  uint64_t incarnation = 0;
};

class RawFunctionClient {
 public:
  // "host:port".
  explicit RawFunctionClient(const std::string& address)
      : stub_(v1::WorkerService::NewStub(::grpc::CreateChannel(
            address, ::grpc::InsecureChannelCredentials()))) {}

  // Calls `function` with `argument`.
  ::grpc::Status Call(const RawDestination& to,
                      const rpc::Function<int64_t(int64_t)>& function,
                      int64_t argument) {
    v1::CallRequest request;
    v1::RequestHeader& header = *request.mutable_header();
    header.set_job(to.job);
    header.set_source("raw");
    header.set_source_rank(-1);
    header.set_destination(to.name);
    header.set_destination_incarnation(to.incarnation);
    request.set_function(std::string(function.name()));
    request.set_signature(function.Signature());
    request.mutable_arguments()->add_values()->set_int_value(argument);
    ::grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(20));
    context.set_wait_for_ready(true);
    v1::CallReply reply;
    return stub_->Call(&context, request, &reply);
  }

 private:
  const std::unique_ptr<v1::WorkerService::Stub> stub_;
};

}  // namespace hawser::tests

#endif  // HAWSER_TESTS_FAULTS_RAW_FUNCTION_CLIENT_H_

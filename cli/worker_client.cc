#include "cli/worker_client.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "async/status_macros.h"
#include "cli/job_access.h"
#include "net/grpc/client_settings.h"
#include "rpc/grpc/status.h"

namespace hawser::cli {

WorkerClient::WorkerClient(rpc::WorkerInfo worker, std::string job,
                           std::string source,
                           std::shared_ptr<const net::Credentials> credentials,
                           absl::Duration timeout)
    : worker_(std::move(worker)),
      job_(std::move(job)),
      source_(std::move(source)),
      timeout_(timeout),
      verification_(std::move(credentials), worker_.name),
      stub_(v1::WorkerService::NewStub(verification_.CreateChannel(
          worker_.address, net::ClientSettings()))) {}

v1::RequestHeader WorkerClient::Header() const {
  v1::RequestHeader header;
  header.set_job(job_);
  header.set_source(source_);
  header.set_source_rank(-1);
  header.set_destination(worker_.name);
  header.set_destination_incarnation(rpc::ToNumber(worker_.incarnation));
  return header;
}

std::unique_ptr<grpc::ClientContext> WorkerClient::NewContext() const {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(absl::ToChronoTime(absl::Now() + timeout_));
  verification_.credentials().Sign(*context);
  return context;
}

absl::Status WorkerClient::Translate(const grpc::Status& status) const {
  if (status.ok()) verification_.NoteAnswer();
  absl::Status error = verification_.Explain(rpc::FromGrpcStatus(status));
  if (error.ok() || absl::StrContains(error.message(), worker_.name)) {
    return error;
  }
  return absl::Status(error.code(),
                      absl::StrCat("worker '", worker_.name, "' at ",
                                   worker_.address, ": ", error.message()));
}

absl::StatusOr<v1::ListFunctionsReply> WorkerClient::ListFunctions() {
  v1::ListFunctionsRequest request;
  *request.mutable_header() = Header();
  v1::ListFunctionsReply reply;
  RETURN_IF_ERROR(
      Translate(stub_->ListFunctions(NewContext().get(), request, &reply)));
  return reply;
}

absl::StatusOr<std::string> WorkerClient::SignatureOf(
    const std::string& function) {
  ASSIGN_OR_RETURN(const v1::ListFunctionsReply reply, ListFunctions());
  for (const v1::FunctionDescription& description : reply.functions()) {
    if (description.name() == function) return description.signature();
  }
  return absl::UnimplementedError(absl::StrCat(
      "worker '", worker_.name, "' does not have a function '", function,
      "'; `hawser list ", worker_.name, "` shows its functions"));
}

absl::StatusOr<v1::CallReply> WorkerClient::Call(v1::CallRequest request) {
  *request.mutable_header() = Header();
  v1::CallReply reply;
  RETURN_IF_ERROR(Translate(stub_->Call(NewContext().get(), request, &reply)));
  return reply;
}

}  // namespace hawser::cli

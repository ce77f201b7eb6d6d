#include "cli/worker_client.h"

#include <cstdint>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "async/status_macros.h"
#include "cli/job_access.h"
#include "net/auth/server_diagnosis.h"
#include "net/grpc/client_settings.h"
#include "rpc/grpc/status.h"

namespace hawser::cli {
namespace {

// Number of the stream. A client reads one stream at a time.
constexpr uint64_t kStream = 1;
constexpr absl::Duration kCloseTimeout = absl::Seconds(1);
// Time to find out why a worker cannot be reached.
constexpr absl::Duration kDiagnosisTimeout = absl::Seconds(1);

}  // namespace

WorkerClient::WorkerClient(rpc::WorkerInfo worker, std::string job,
                           std::string source,
                           std::shared_ptr<const net::Credentials> credentials,
                           absl::Duration timeout)
    : worker_(std::move(worker)),
      job_(std::move(job)),
      source_(std::move(source)),
      timeout_(timeout),
      verification_(std::move(credentials), worker_.name),
      channel_(
          verification_.CreateChannel(worker_.address, net::ClientSettings())),
      stub_(v1::WorkerService::NewStub(channel_)),
      streams_(v1::StreamService::NewStub(channel_)) {}

v1::RequestHeader WorkerClient::Header() const {
  v1::RequestHeader header;
  header.set_job(job_);
  header.set_source(source_);
  header.set_source_rank(-1);
  header.set_source_incarnation(rpc::ToNumber(incarnation_));
  header.set_destination(worker_.name);
  header.set_destination_incarnation(rpc::ToNumber(worker_.incarnation));
  return header;
}

std::unique_ptr<grpc::ClientContext> WorkerClient::NewContext() const {
  return NewContext(absl::Now() + timeout_);
}

std::unique_ptr<grpc::ClientContext> WorkerClient::NewContext(
    absl::Time deadline) const {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(absl::ToChronoTime(deadline));
  verification_.credentials().Sign(*context);
  return context;
}

absl::Status WorkerClient::Translate(const grpc::Status& status) const {
  if (status.ok()) verification_.NoteAnswer();
  absl::Status error = verification_.Explain(rpc::FromGrpcStatus(status));
  if (absl::IsUnavailable(error)) {
    const absl::Status cause = net::DiagnoseServer(
        worker_.address, verification_.credentials().has_tls(),
        kDiagnosisTimeout);
    if (!cause.ok()) error = cause;
  }
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
  return absl::NotFoundError(absl::StrCat(
      "worker '", worker_.name, "' does not have a function '", function,
      "'; `hawser list ", worker_.name, "` shows its functions"));
}

absl::StatusOr<v1::CallReply> WorkerClient::Call(v1::CallRequest request) {
  *request.mutable_header() = Header();
  v1::CallReply reply;
  RETURN_IF_ERROR(Translate(stub_->Call(NewContext().get(), request, &reply)));
  return reply;
}

absl::Status WorkerClient::ReadStream(
    v1::CallRequest request,
    absl::FunctionRef<absl::Status(const v1::CallReply&)> take) {
  const absl::Time deadline = absl::Now() + timeout_;
  v1::StreamOpenRequest open;
  *open.mutable_header() = Header();
  open.set_function(std::move(*request.mutable_function()));
  open.set_signature(std::move(*request.mutable_signature()));
  *open.mutable_arguments() = std::move(*request.mutable_arguments());
  *open.mutable_tensors() = std::move(*request.mutable_tensors());
  *open.mutable_tensor_data() = std::move(*request.mutable_tensor_data());
  open.set_stream(kStream);
  open.set_window(1);
  v1::StreamOpenReply opened;
  RETURN_IF_ERROR(
      Translate(streams_->Open(NewContext(deadline).get(), open, &opened)));
  absl::Status status = ReadValues(deadline, take);
  v1::StreamCloseRequest close;
  *close.mutable_header() = Header();
  close.set_stream(kStream);
  v1::StreamCloseReply closed;
  // A worker that does not receive this closes the stream by itself.
  (void)streams_->Close(NewContext(absl::Now() + kCloseTimeout).get(), close,
                        &closed);
  return status;
}

absl::Status WorkerClient::ReadValues(
    absl::Time deadline,
    absl::FunctionRef<absl::Status(const v1::CallReply&)> take) {
  for (uint64_t sequence = 0;; ++sequence) {
    v1::StreamNextRequest next;
    *next.mutable_header() = Header();
    next.set_stream(kStream);
    next.set_sequence(sequence);
    next.set_acknowledged(sequence);
    v1::StreamNextReply reply;
    RETURN_IF_ERROR(
        Translate(streams_->Next(NewContext(deadline).get(), next, &reply)));
    if (reply.has_end()) {
      return absl::Status(static_cast<absl::StatusCode>(reply.end().code()),
                          reply.end().message());
    }
    v1::CallReply value;
    *value.mutable_results() = std::move(*reply.mutable_value());
    *value.mutable_tensors() = std::move(*reply.mutable_tensors());
    *value.mutable_tensor_data() = std::move(*reply.mutable_tensor_data());
    RETURN_IF_ERROR(take(value));
  }
}

}  // namespace hawser::cli

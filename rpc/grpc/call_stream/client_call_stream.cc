#include "rpc/grpc/call_stream/client_call_stream.h"

#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/status.h"
#include "rpc/grpc/status.h"

namespace hawser::rpc {
namespace {

constexpr char kOpenPath[] = "/hawser.v1.CallStreamService/Open";

// Opened in these steps, each an event: the call of gRPC has started; the
// server's first message confirms the stream.
class ClientCallStream final : public CallStream {
 public:
  ClientCallStream(std::shared_ptr<GrpcConnection> connection,
                   std::shared_ptr<const net::PeerVerification> verification,
                   Options options, LinkOpener::Done done)
      : CallStream(std::move(options)),
        connection_(std::move(connection)),
        verification_(std::move(verification)),
        done_(std::move(done)) {}

  void Open() {
    Gate::Entry entry(options().gate.get());
    if (!entry) return;
    verification_->credentials().Sign(context_);
    stream_ = connection_->first_stub().PrepareCall(&context_, kOpenPath,
                                                    options().poller->queue());
    started_.self = shared_from_this();
    stream_->StartCall(&started_);
  }
  void Cancel() { context_.TryCancel(); }

 private:
  void OnStarted(bool) { AwaitConfirmation(); }

  void AwaitConfirmation() {
    Gate::Entry entry(options().gate.get());
    if (!entry) return;
    confirmed_.self = shared_from_this();
    stream_->Read(&confirmation_, &confirmed_);
  }

  void OnConfirmed(bool ok) {
    if (!ok) {
      Finish();
      return;
    }
    verification_->NoteAnswer();
    std::move(done_)(std::static_pointer_cast<CallStream>(shared_from_this()));
    done_ = nullptr;
  }

  void StartRead(::grpc::ByteBuffer* message, Event* event) override {
    stream_->Read(message, event);
  }
  void StartWrite(const ::grpc::ByteBuffer& message, Event* event) override {
    stream_->Write(message, event);
  }
  void EndStreamLocked(const absl::Status&) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    context_.TryCancel();
  }
  void OnReadsEnded() override { Finish(); }

  void Finish() {
    Gate::Entry entry(options().gate.get());
    if (!entry) {
      End(absl::CancelledError("the transport was shut down"));
      return;
    }
    finished_.self = shared_from_this();
    stream_->Finish(&status_, &finished_);
  }

  void OnFinished(bool) {
    absl::Status status = verification_->Explain(FromGrpcStatus(status_));
    if (done_ != nullptr) {
      // Refused.
      std::move(done_)(status.ok() ? absl::UnavailableError("no reply")
                                   : std::move(status));
      done_ = nullptr;
      return;
    }
    // The requests may have been received.
    End(absl::UnavailableError(
        absl::StrCat("the call stream to the peer ended: ",
                     status.ok() ? "the peer closed it" : status.message())));
  }

  const std::shared_ptr<GrpcConnection> connection_;
  const std::shared_ptr<const net::PeerVerification> verification_;
  // Null once it has run.
  LinkOpener::Done done_;
  Event started_{this, ToCallback(&ClientCallStream::OnStarted)};
  Event confirmed_{this, ToCallback(&ClientCallStream::OnConfirmed)};
  Event finished_{this, ToCallback(&ClientCallStream::OnFinished)};
  ::grpc::ClientContext context_;
  ::grpc::ByteBuffer confirmation_;
  ::grpc::Status status_;
  // Allocated in the arena of the call, which the context keeps alive.
  std::unique_ptr<::grpc::GenericClientAsyncReaderWriter> stream_;
};

}  // namespace

class CallStreamOpener::Opening {
 public:
  explicit Opening(std::weak_ptr<ClientCallStream> stream)
      : stream_(std::move(stream)) {}
  void Cancel() const {
    if (auto stream = stream_.lock()) stream->Cancel();
  }

 private:
  const std::weak_ptr<ClientCallStream> stream_;
};

CallStreamOpener::CallStreamOpener(
    std::shared_ptr<GrpcConnection> connection,
    std::shared_ptr<const net::PeerVerification> verification,
    CallStream::Options options)
    : connection_(std::move(connection)),
      verification_(std::move(verification)),
      options_(std::move(options)) {}

CallStreamOpener::~CallStreamOpener() = default;

void CallStreamOpener::Open(Done done) {
  auto stream = std::make_shared<ClientCallStream>(connection_, verification_,
                                                   options_, std::move(done));
  {
    async::MutexLock lock(&mutex_);
    if (cancelled_) return;
    opening_ = std::make_unique<Opening>(stream);
    stream->Open();
  }
}

void CallStreamOpener::Cancel() {
  async::MutexLock lock(&mutex_);
  cancelled_ = true;
  if (opening_ != nullptr) opening_->Cancel();
}

}  // namespace hawser::rpc

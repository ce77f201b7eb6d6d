// Tests of calls that a server ends without a reply.

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "async/testing/status_matchers.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "rpc/grpc/transport.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::StatusIs;

// Accepts one call and cancels it on request.
class CancellingServer {
 public:
  CancellingServer() {
    ::grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", ::grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterAsyncGenericService(&service_);
    queue_ = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
    service_.RequestCall(&context_, &stream_, queue_.get(), queue_.get(),
                         nullptr);
  }
  ~CancellingServer() {
    server_->Shutdown();
    queue_->Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_->Next(&tag, &ok)) {
    }
  }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }
  void AwaitCall() {
    void* tag = nullptr;
    bool ok = false;
    ASSERT_TRUE(queue_->Next(&tag, &ok) && ok);
  }
  void CancelCall() { context_.TryCancel(); }

 private:
  int port_ = 0;
  ::grpc::AsyncGenericService service_;
  std::unique_ptr<::grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<::grpc::Server> server_;
  ::grpc::GenericServerContext context_;
  ::grpc::GenericServerAsyncReaderWriter stream_{&context_};
};

class DroppedCallTest : public testing::Test {
 protected:
  void Call() {
    connection_ = *client_.Connect({server_.address()});
    id_ = connection_->Call("/t.T/Any", Payload("x"), async::kNever,
                            [this](const absl::StatusOr<Payload>& reply) {
                              status_ = reply.status();
                              done_.Notify();
                            });
    server_.AwaitCall();
  }

  CancellingServer server_;
  GrpcTransport client_{{.same_host = false}};
  std::shared_ptr<Connection> connection_;
  Connection::CallId id_ = 0;
  absl::Status status_;
  absl::Notification done_;
};

TEST_F(DroppedCallTest, IsNotReportedAsCancelled) {
  Call();
  server_.CancelCall();
  done_.WaitForNotification();
  EXPECT_THAT(status_, StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(DroppedCallTest, CallerThatCancelsGetsCancelled) {
  Call();
  connection_->Cancel(id_);
  done_.WaitForNotification();
  EXPECT_THAT(status_, StatusIs(absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace hawser::rpc

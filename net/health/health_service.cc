#include "net/health/health_service.h"

#include "net/health/health_watch.h"

namespace hawser::net {

using ::grpc::health::v1::HealthCheckRequest;
using ::grpc::health::v1::HealthCheckResponse;

class HealthService::Watching final
    : public grpc::ServerWriteReactor<HealthCheckResponse> {
 public:
  Watching(std::shared_ptr<Health> health, const std::string& service)
      : watch_(std::make_shared<Stream>(this, std::move(health))) {
    watch_->Begin(service);
  }

  void OnWriteDone(bool ok) override { watch_->OnWritten(ok); }
  void OnCancel() override { watch_->OnCancelled(); }
  void OnDone() override { delete this; }

 private:
  // Does nothing after Finish, since the reactor may be destroyed then.
  class Stream final : public HealthWatch {
   public:
    Stream(Watching* reactor, std::shared_ptr<Health> health)
        : HealthWatch(std::move(health)), reactor_(reactor) {}

   private:
    void Write(ServingStatus status) override {
      response_.set_status(status);
      reactor_->StartWrite(&response_);
    }
    void Finish(const grpc::Status& status) override {
      reactor_->Finish(status);
    }

    Watching* const reactor_;
    HealthCheckResponse response_;
  };

  const std::shared_ptr<Stream> watch_;
};

grpc::ServerUnaryReactor* HealthService::Check(
    grpc::CallbackServerContext* context, const HealthCheckRequest* request,
    HealthCheckResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(CheckHealth(*health_, *request, *response));
  return reactor;
}

grpc::ServerWriteReactor<HealthCheckResponse>* HealthService::Watch(
    grpc::CallbackServerContext*, const HealthCheckRequest* request) {
  return new Watching(health_, request->service());
}

}  // namespace hawser::net

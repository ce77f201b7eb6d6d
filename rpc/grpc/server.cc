#include "rpc/grpc/server.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "net/in_fragments.h"
#include "rpc/grpc/fragments/message_assembler.h"

namespace hawser::rpc {
namespace {

// Calls of a hot method that gRPC can accept before the first is handled.
constexpr int kRequestedHot = 64;
constexpr int kRequestedOther = 4;

// Time that a stopping server waits for its last replies to be sent.
constexpr std::chrono::milliseconds kLastAnswers(500);

// Budget for incomplete requests in fragments. A peer that announces more than
// it sends cannot exhaust it alone.
std::shared_ptr<AssemblyBudget> MakeBudget(size_t max_message_bytes,
                                           const GrpcLimits& limits) {
  const size_t bytes = MemoryQuotaBytes(limits);
  return std::make_shared<AssemblyBudget>(
      bytes, std::min(bytes, std::max(bytes / 2, max_message_bytes)));
}

}  // namespace

GrpcServer::GrpcServer(std::vector<TransportMethod> methods,
                       ::grpc::ServerBuilder& builder,
                       ::grpc::ServerCompletionQueue* queue,
                       std::shared_ptr<Gate> gate,
                       std::shared_ptr<const net::Credentials> credentials,
                       std::shared_ptr<net::PerPeerQuota> reply_quota,
                       size_t max_message_bytes, const GrpcLimits& limits)
    : methods_(std::move(methods)),
      parts_(std::make_shared<ServerParts>(
          ServerParts{.queue = queue,
                      .gate = std::move(gate),
                      .credentials = std::move(credentials),
                      .assembly_budget = MakeBudget(max_message_bytes, limits),
                      .reply_quota = std::move(reply_quota),
                      .max_message_bytes = max_message_bytes,
                      .fragment_timeout = limits.fragment_timeout})) {
  for (const TransportMethod& method : methods_) {
    GrpcMethods& service =
        services_[method.path.substr(0, method.path.rfind('/'))];
    served_.push_back({.method = &method,
                       .service = &service,
                       .number = service.Add(method.path),
                       .in_fragments = false,
                       .parts = parts_});
    served_.push_back(
        {.method = &method,
         .service = &service,
         .number = service.Add(method.path + std::string(net::kInFragments)),
         .in_fragments = true,
         .parts = parts_});
  }
  for (auto& [name, service] : services_) builder.RegisterService(&service);
}

void GrpcServer::Start(std::unique_ptr<::grpc::Server> server) {
  server_ = std::move(server);
  for (const ServedMethod& served : served_) {
    const bool hot = served.method->hot && !served.in_fragments;
    const int requested = hot ? kRequestedHot : kRequestedOther;
    for (int n = 0; n < requested; ++n) served.RequestNext();
  }
}

void GrpcServer::Stop() {
  parts_->registry->Close();
  for (const auto& call : parts_->registry->calls()) call->Abort();
  server_->Shutdown(std::chrono::system_clock::now() + kLastAnswers);
}

void GrpcServer::Release() {
  for (const auto& call : parts_->registry->calls()) call->Release();
  parts_->registry->AwaitEmpty();
  server_.reset();
}

}  // namespace hawser::rpc

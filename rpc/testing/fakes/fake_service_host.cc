#include "rpc/testing/fakes/fake_service_host.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "async/join.h"
#include "async/status_macros.h"

namespace hawser::rpc {

void FakeServiceHost::SetError(async::Promise<RawMessage>& reply,
                               const absl::Status& error) {
  reply.Set(error);
}

void FakeServiceHost::SetRawReply(async::Promise<RawMessage>& reply,
                                  const google::protobuf::MessageLite& body,
                                  std::vector<tensor::Tensor> tensors) {
  reply.Set(internal::SerializeMessage(body, std::move(tensors)));
}

FakeServiceHost::FakeServiceHost(WorkerInfo self) : self_(std::move(self)) {
  workers_.push_back(self_);
}

FakeServiceHost::~FakeServiceHost() = default;

WorkerInfo FakeServiceHost::MakeWorker(int rank) {
  return {.name = absl::StrCat("w", rank),
          .id = WorkerId(rank),
          .incarnation = Incarnation{1000 + static_cast<uint64_t>(rank)},
          .address = absl::StrCat("host", rank, ":1")};
}

void FakeServiceHost::LoseWorker(const WorkerInfo& worker) {
  lost_.insert(worker.incarnation);
}

bool FakeServiceHost::IsLost(const WorkerInfo& worker) const {
  return lost_.contains(worker.incarnation);
}

absl::StatusOr<WorkerInfo> FakeServiceHost::FindWorker(
    const Destination& worker) {
  const auto matches = [&](const WorkerInfo& known) {
    if (const auto* id = std::get_if<WorkerId>(&worker.to())) {
      return known.id == *id;
    }
    if (const auto* info = std::get_if<WorkerInfo>(&worker.to())) {
      return known.incarnation == info->incarnation;
    }
    return known.name == worker.name();
  };
  const auto found = std::find_if(workers_.begin(), workers_.end(), matches);
  if (found == workers_.end()) {
    return absl::NotFoundError(
        absl::StrCat("the job has no ", worker.ToString()));
  }
  return *found;
}

absl::StatusOr<const RegisteredFunction*> FakeServiceHost::FindFunction(
    const MethodCall&, std::string_view name, std::string_view signature) {
  return registry_.Find(name, signature);
}

async::Future<ErasedValue> FakeServiceHost::Invoke(
    const RegisteredFunction& function, Decoder& arguments) {
  absl::StatusOr<RegisteredFunction::Invocation> prepared =
      function.Prepare(arguments);
  if (!prepared.ok()) {
    return async::MakeReadyFuture<ErasedValue>(prepared.status());
  }
  async::Promise<ErasedValue> promise;
  async::Future<ErasedValue> future = promise.future();
  async::JoinAll(arguments.TakePrerequisites())
      .OnReady([invocation = *std::move(prepared),
                promise =
                    std::move(promise)](const absl::Status& status) mutable {
        if (!status.ok()) {
          promise.Set(status);
          return;
        }
        std::move(invocation)([promise = std::move(promise)](
                                  absl::StatusOr<ErasedValue> result) mutable {
          promise.Set(std::move(result));
        });
      });
  return future;
}

absl::Status FakeServiceHost::RegisterRawMethod(const MethodName& method,
                                                RawMethodHandler handler,
                                                MethodOptions options) {
  RETURN_IF_ERROR(method.Resolve().status());
  const auto [it, added] =
      methods_.try_emplace(std::string(method.name()),
                           Registered{std::move(handler), std::move(options)});
  if (!added) {
    return absl::AlreadyExistsError(
        absl::StrCat("method '", it->first, "' is served already"));
  }
  return absl::OkStatus();
}

std::optional<MethodOptions> FakeServiceHost::OptionsOf(
    const MethodName& method) const {
  const auto found = methods_.find(std::string(method.name()));
  if (found == methods_.end()) return std::nullopt;
  return found->second.options;
}

async::Future<RawMessage> FakeServiceHost::CallRawMethod(
    const Destination& to, const MethodName& method, RawMessage request,
    const MethodCallOptions& options) {
  const auto definition = method.Resolve();
  if (!definition.ok()) {
    return async::MakeReadyFuture<RawMessage>(definition.status());
  }
  RawCall& call = calls_.emplace_back(
      RawCall{to, std::string(method.name()), std::move(request), options, {}});
  return call.reply.future();
}

std::optional<FakeServiceHost::RawCall> FakeServiceHost::TakeRawCall(
    std::string_view method) {
  const auto found =
      std::find_if(calls_.begin(), calls_.end(),
                   [&](const RawCall& call) { return call.method == method; });
  if (found == calls_.end()) return std::nullopt;
  RawCall call = std::move(*found);
  calls_.erase(found);
  return call;
}

async::Future<RawMessage> FakeServiceHost::ReceiveRaw(std::string_view method,
                                                      const MethodCall& call,
                                                      RawMessage request) {
  const auto found = methods_.find(std::string(method));
  if (found == methods_.end()) {
    return async::MakeReadyFuture<RawMessage>(absl::UnimplementedError(
        absl::StrCat("method '", std::string(method), "' is not served")));
  }
  return found->second.handler(call, std::move(request));
}

}  // namespace hawser::rpc

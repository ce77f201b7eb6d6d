#include "rpc/inproc/transport.h"

#include <map>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/mutex.h"

namespace hawser::rpc {
namespace {

using internal::InprocCall;
using internal::InprocNode;

class InprocConnection final
    : public Connection,
      public std::enable_shared_from_this<InprocConnection> {
 public:
  InprocConnection(std::shared_ptr<InprocNetwork::State> network,
                   std::shared_ptr<InprocNode> source, std::string destination,
                   std::shared_ptr<std::atomic<bool>> stopped)
      : network_(std::move(network)),
        source_(std::move(source)),
        destination_(std::move(destination)),
        stopped_(std::move(stopped)) {}

  ~InprocConnection() override {
    Close(absl::CancelledError("the connection was dropped"));
  }

  CallId Call(std::string_view path, Payload request,
              async::MonotonicTime deadline, Done done) override {
    CallId id = 0;
    std::optional<absl::Status> refused;
    std::shared_ptr<InprocCall> call;
    Gate::Entry entry(&source_->gate);
    {
      async::MutexLock lock(&mutex_);
      id = ++last_id_;
      refused = closed_;
      if (!entry || stopped_->load()) {
        refused = absl::CancelledError("the transport was shut down");
      }
      if (!refused.has_value()) {
        call = std::make_shared<InprocCall>(
            network_, source_, destination_, std::string(path), deadline,
            [weak = weak_from_this(), id,
             done = std::move(done)](absl::StatusOr<Payload> reply) mutable {
              if (auto self = weak.lock()) self->Forget(id);
              std::move(done)(std::move(reply));
            });
        // In one critical section: Close must end each call that it does not
        // reject, and finds only calls registered with the network.
        network_->Enter(call);
        calls_.emplace(id, call);
      }
    }
    if (refused.has_value()) {
      std::move(done)(*refused);
      return id;
    }
    network_->Send(call, std::move(request));
    // Shutdown may have collected calls before this one was registered.
    if (stopped_->load()) {
      call->CompleteNow(absl::CancelledError("the transport was shut down"));
    }
    return id;
  }

  void Cancel(CallId id) override {
    std::shared_ptr<InprocCall> call;
    {
      async::MutexLock lock(&mutex_);
      auto it = calls_.find(id);
      if (it == calls_.end()) return;
      call = it->second;
    }
    call->Complete(absl::CancelledError("the caller cancelled the call"));
  }

  void Close(absl::Status status) override {
    std::map<CallId, std::shared_ptr<InprocCall>> calls;
    {
      async::MutexLock lock(&mutex_);
      if (!closed_.has_value()) closed_ = status;
      calls.swap(calls_);
    }
    for (const auto& [id, call] : calls) call->Complete(status);
  }

 private:
  void Forget(CallId id) {
    std::shared_ptr<InprocCall> forgotten;
    async::MutexLock lock(&mutex_);
    auto it = calls_.find(id);
    if (it == calls_.end()) return;
    forgotten = std::move(it->second);
    calls_.erase(it);
  }

  const std::shared_ptr<InprocNetwork::State> network_;
  const std::shared_ptr<InprocNode> source_;
  const std::string destination_;
  const std::shared_ptr<std::atomic<bool>> stopped_;

  async::Mutex mutex_;
  std::optional<absl::Status> closed_ ABSL_GUARDED_BY(mutex_);
  CallId last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<CallId, std::shared_ptr<InprocCall>> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

InprocTransport::InprocTransport(std::shared_ptr<InprocNetwork::State> network,
                                 async::Clock& clock)
    : network_(std::move(network)),
      node_(network_->AddNode(clock)),
      stopped_(std::make_shared<std::atomic<bool>>(false)) {}

InprocTransport::~InprocTransport() { Shutdown(); }

absl::StatusOr<std::string> InprocTransport::Listen(
    std::string_view, std::vector<TransportMethod> methods) {
  async::MutexLock lock(&node_->mutex);
  if (!node_->methods.empty()) {
    return absl::FailedPreconditionError("the transport already serves");
  }
  for (TransportMethod& method : methods) {
    std::string path = method.path;
    node_->methods.emplace(std::move(path), std::move(method));
  }
  return node_->address;
}

absl::StatusOr<std::shared_ptr<Connection>> InprocTransport::Connect(
    const ConnectionTarget& target) {
  const std::string& address = target.address;
  if (!address.starts_with("inproc:")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", address,
        "' is not an address of an in-process network: it must begin with "
        "\"inproc:\""));
  }
  return std::make_shared<InprocConnection>(network_, node_, address, stopped_);
}

void InprocTransport::Probe(const std::string& address, absl::Duration,
                            absl::AnyInvocable<void(absl::Status) &&> done) {
  std::move(done)(network_->CheckPath(node_->address, address));
}

void InprocTransport::Shutdown() {
  if (!stopped_->exchange(true)) network_->RemoveNode(*node_);
  network_->EndCallsOf(*node_);
  node_->gate.Close();
  std::map<std::string, TransportMethod, std::less<>> methods;
  async::MutexLock lock(&node_->mutex);
  methods.swap(node_->methods);
}

}  // namespace hawser::rpc

#include "dist_autograd/backward_pass.h"

#include <map>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "autograd/variable.h"
#include "rref/wire_ids.h"

namespace hawser::dist_autograd {
namespace {

v1::BackwardPassId ToProto(const BackwardPassOptions& options,
                           rpc::Incarnation context_incarnation) {
  v1::BackwardPassId proto;
  proto.set_context(ToNumber(options.id.context));
  proto.set_context_incarnation(rpc::ToNumber(context_incarnation));
  *proto.mutable_root() = rref::ToProto(options.id.root);
  proto.set_number(options.id.number);
  proto.set_retain_graph(options.retain_graph);
  proto.set_smart(options.smart);
  return proto;
}

// The pass whose nodes the current thread runs.
thread_local constinit const BackwardPass* t_pass = nullptr;

// Marks the current thread as running nodes of a pass. Nodes run in the threads
// that start the pass, or feed or skip send functions.
class RunningHere {
 public:
  explicit RunningHere(const BackwardPass* pass)
      : before_(std::exchange(t_pass, pass)) {}
  ~RunningHere() { t_pass = before_; }
  RunningHere(const RunningHere&) = delete;
  RunningHere& operator=(const RunningHere&) = delete;

 private:
  const BackwardPass* const before_;
};

std::string DescribeMessage(uint64_t message) {
  return ToString(AutogradMessageId{message});
}

}  // namespace

absl::StatusOr<std::shared_ptr<BackwardPass>> BackwardPass::Create(
    std::shared_ptr<Context> context, BackwardPassOptions options,
    const std::vector<Tensor>& roots,
    std::shared_ptr<BackwardPassTransport> transport) {
  std::shared_ptr<BackwardPass> pass(
      new BackwardPass(std::move(context), options, std::move(transport)));
  RETURN_IF_ERROR(pass->Prepare(roots));
  return pass;
}

BackwardPass::BackwardPass(std::shared_ptr<Context> context,
                           BackwardPassOptions options,
                           std::shared_ptr<BackwardPassTransport> transport)
    : options_(options),
      context_(std::move(context)),
      transport_(std::move(transport)) {
  done_future_ = done_.emplace().future();
}

absl::Status BackwardPass::Prepare(const std::vector<Tensor>& roots) {
  Context::Messages messages = context_->messages();
  std::vector<autograd::Edge> edges;
  for (const Tensor& root : roots) {
    edges.push_back(autograd::GradEdge(root));
    root_nodes_.push_back(edges.back().node);
  }
  std::vector<std::shared_ptr<autograd::Node>> extra;
  async::MutexLock lock(&mutex_);
  for (std::shared_ptr<SendFunction>& send : messages.sends) {
    extra.push_back(send);
    ++peers_[send->peer()].awaited;
    sends_.emplace(ToNumber(send->message()), std::move(send));
  }
  for (std::shared_ptr<RecvFunction>& recv : messages.recvs) {
    recvs_.emplace(ToNumber(recv->message()), std::move(recv));
  }
  autograd::GraphTaskOptions task_options;
  task_options.retain_graph = options_.retain_graph;
  task_options.capture = [context = context_](const Tensor& variable,
                                              Tensor gradient) {
    return context->AddGradient(variable, std::move(gradient));
  };
  ASSIGN_OR_RETURN(
      task_, autograd::GraphTask::Create(std::move(edges), std::move(extra),
                                         std::move(task_options)));
  return absl::OkStatus();
}

void BackwardPass::Start(std::vector<Tensor> root_gradients) {
  task_->done().OnReady([weak = weak_from_this()](const absl::Status& status) {
    const std::shared_ptr<BackwardPass> pass = weak.lock();
    if (pass == nullptr) return;
    if (status.ok()) {
      pass->FinishOne();
    } else {
      pass->Fail(status);
    }
  });
  if (options_.smart) SkipUnreached();
  {
    RunningHere running(this);
    if (absl::Status status = task_->Run(std::move(root_gradients));
        !status.ok()) {
      Fail(status);
    }
  }
  // Other workers first apply the message that made them take part, before they
  // send messages to peers that they have not heard from.
  if (!root_nodes_.empty()) {
    Announce();
    FinishOne();
  }
}

async::Future<void> BackwardPass::Receive(const rpc::WorkerRun& from,
                                          const v1::GradientRequest& request,
                                          std::vector<Tensor> tensors,
                                          bool begins) {
  RunningHere running(this);
  bool held = false;
  {
    async::MutexLock lock(&mutex_);
    const std::pair<rpc::WorkerRun, uint64_t> message(from, request.sequence());
    if (root_nodes_.empty() && !held_.has_value()) held_ = message;
    held = held_ == message;
    // The messages that this one causes must be sent before this part can end.
    ++outstanding_;
  }
  absl::Status status = ApplyGradients(from, request, std::move(tensors));
  if (status.ok() && request.has_manifest()) {
    status = ApplyManifest(from, request.manifest());
  }
  if (!status.ok()) {
    Fail(status);
    // After a failure, later messages get the error of that failure.
    async::MutexLock lock(&mutex_);
    if (!failure_.ok()) status = failure_;
  }
  if (options_.smart) Announce();
  if (begins) FinishOne();
  FinishOne();
  if (held) return done();
  return async::MakeReadyFuture<void>(std::move(status));
}

absl::Status BackwardPass::ApplyGradients(const rpc::WorkerRun& from,
                                          const v1::GradientRequest& request,
                                          std::vector<Tensor> tensors) {
  size_t next = 0;
  for (const v1::MessageGradients& entry : request.gradients()) {
    ASSIGN_OR_RETURN(const std::shared_ptr<SendFunction> send,
                     FindSend(entry.message(), from));
    const std::vector<TensorSpec>& specs = send->specs();
    if (static_cast<size_t>(entry.present_size()) != specs.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "forward message ", DescribeMessage(entry.message()), " had ",
          specs.size(), " tensors that require gradients, but ",
          entry.present_size(), " gradients were returned"));
    }
    std::vector<Tensor> gradients;
    for (size_t i = 0; i < specs.size(); ++i) {
      if (!entry.present(static_cast<int>(i))) {
        gradients.push_back(
            Tensor::Zeros(specs[i].shape, {.dtype = specs[i].dtype}));
        continue;
      }
      if (next >= tensors.size() || tensors[next].shape() != specs[i].shape ||
          tensors[next].dtype() != specs[i].dtype) {
        return absl::InvalidArgumentError(absl::StrCat(
            "gradient ", i, " of forward message ",
            DescribeMessage(entry.message()),
            " is missing or differs from the tensor in shape or dtype"));
      }
      gradients.push_back(std::move(tensors[next++]));
    }
    {
      async::MutexLock lock(&mutex_);
      // Ignores a repeated message.
      if (!fed_.insert(entry.message()).second) continue;
      --peers_[from].awaited;
    }
    RETURN_IF_ERROR(task_->Feed(send, std::move(gradients)));
  }
  for (const uint64_t message : request.skipped()) {
    RETURN_IF_ERROR(SkipSend(message, from));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<SendFunction>> BackwardPass::FindSend(
    uint64_t message, const rpc::WorkerRun& from) {
  auto it = sends_.find(message);
  if (it == sends_.end()) {
    return absl::NotFoundError(absl::StrCat(
        "got a gradient for forward message ", DescribeMessage(message),
        ", which this worker did not send before the backward pass began"));
  }
  if (it->second->peer() != from) {
    return absl::InvalidArgumentError(absl::StrCat(
        "worker ", from.id.value(), " sent a gradient for forward message ",
        DescribeMessage(message), ", which was sent to another worker"));
  }
  return it->second;
}

absl::Status BackwardPass::SkipSend(uint64_t message,
                                    const rpc::WorkerRun& from) {
  auto it = sends_.find(message);
  // This worker does not wait for messages sent after its part began.
  if (it == sends_.end()) return absl::OkStatus();
  RETURN_IF_ERROR(FindSend(message, from));
  {
    async::MutexLock lock(&mutex_);
    if (fed_.contains(message) || !skipped_.insert(message).second) {
      return absl::OkStatus();
    }
    --peers_[from].awaited;
  }
  RETURN_IF_ERROR(task_->Skip(it->second));
  SkipUnreached();
  return absl::OkStatus();
}

absl::Status BackwardPass::ApplyManifest(const rpc::WorkerRun& from,
                                         const v1::MessageManifest& manifest) {
  const absl::flat_hash_set<uint64_t> known(manifest.known().begin(),
                                            manifest.known().end());
  std::vector<uint64_t> lost;
  {
    async::MutexLock lock(&mutex_);
    PeerExchange& peer = peers_[from];
    peer.heard_of = true;
    for (const uint64_t message : manifest.expected()) {
      if (!recvs_.contains(message) && notified_.insert(message).second) {
        peer.skips.push_back(message);
      }
    }
    for (const auto& [message, send] : sends_) {
      if (send->peer() == from && !known.contains(message)) {
        lost.push_back(message);
      }
    }
  }
  for (const uint64_t message : lost) {
    RETURN_IF_ERROR(SkipSend(message, from));
  }
  return absl::OkStatus();
}

void BackwardPass::SkipUnreached() {
  std::vector<std::shared_ptr<autograd::Node>> alive = root_nodes_;
  {
    async::MutexLock lock(&mutex_);
    for (const auto& [message, send] : sends_) {
      if (!skipped_.contains(message)) alive.push_back(send);
    }
  }
  absl::flat_hash_set<const autograd::Node*> reached;
  for (const auto& leaf : autograd::ReachableLeaves(alive)) {
    reached.insert(leaf.get());
  }
  async::MutexLock lock(&mutex_);
  for (const auto& [message, recv] : recvs_) {
    if (reached.contains(recv.get()) || !notified_.insert(message).second)
      continue;
    peers_[recv->peer()].skips.push_back(message);
  }
}

void BackwardPass::Announce() {
  if (!options_.smart) return;
  std::vector<rpc::WorkerRun> receivers;
  {
    async::MutexLock lock(&mutex_);
    for (const auto& [worker, peer] : peers_) {
      const bool owes_news =
          peer.awaited > 0 && !peer.heard_of && peer.last_sequence == 0;
      if (!peer.skips.empty() || owes_news) receivers.push_back(worker);
    }
  }
  for (const rpc::WorkerRun& worker : receivers) {
    Send(worker, v1::GradientRequest(), {});
  }
}

const BackwardPass* BackwardPass::Current() { return t_pass; }

void BackwardPass::AddWork(const async::Future<void>& work) {
  {
    async::MutexLock lock(&mutex_);
    ++outstanding_;
  }
  FinishWith(work);
}

absl::Status BackwardPass::SendGradients(const RecvFunction& recv,
                                         std::vector<Tensor> gradients) {
  const uint64_t message = ToNumber(recv.message());
  {
    async::MutexLock lock(&mutex_);
    notified_.insert(message);
  }
  v1::GradientRequest request;
  v1::MessageGradients& entry = *request.add_gradients();
  entry.set_message(message);
  std::vector<Tensor> tensors;
  for (Tensor& gradient : gradients) {
    entry.add_present(gradient.defined());
    if (gradient.defined()) tensors.push_back(std::move(gradient));
  }
  Send(recv.peer(), std::move(request), std::move(tensors));
  return absl::OkStatus();
}

void BackwardPass::Send(const rpc::WorkerRun& to, v1::GradientRequest request,
                        std::vector<Tensor> tensors) {
  *request.mutable_pass() = ToProto(options_, context_->creator().incarnation);
  {
    async::MutexLock lock(&mutex_);
    if (!failure_.ok()) return;
    PeerExchange& peer = peers_[to];
    request.set_sequence(++peer.last_sequence);
    for (const uint64_t message : std::exchange(peer.skips, {})) {
      request.add_skipped(message);
    }
    if (options_.smart && peer.last_sequence == 1) {
      *request.mutable_manifest() = ManifestLocked(to);
    }
    ++outstanding_;
  }
  const async::Future<void> sent =
      transport_->SendGradients(to, std::move(request), std::move(tensors));
  // Only the root worker has a thread that waits for the pass.
  if (!root_nodes_.empty()) {
    async::MutexLock lock(&mutex_);
    pollers_.push_back(sent.wait_poller());
  }
  FinishWith(sent);
}

void BackwardPass::FinishWith(const async::Future<void>& work) {
  work.OnReady([pass = shared_from_this()](const absl::Status& status) {
    if (status.ok()) {
      pass->FinishOne();
    } else {
      pass->Fail(status);
    }
  });
}

std::shared_ptr<async::WaitPoller> BackwardPass::poller() const {
  async::MutexLock lock(&mutex_);
  return async::PollerOfAll(pollers_);
}

v1::MessageManifest BackwardPass::ManifestLocked(
    const rpc::WorkerRun& to) const {
  v1::MessageManifest manifest;
  for (const auto& [message, send] : sends_) {
    if (send->peer() == to && !fed_.contains(message) &&
        !skipped_.contains(message)) {
      manifest.add_expected(message);
    }
  }
  for (const auto& [message, recv] : recvs_) {
    if (recv->peer() == to) manifest.add_known(message);
  }
  return manifest;
}

void BackwardPass::FinishOne() {
  std::optional<async::Promise<void>> done;
  {
    async::MutexLock lock(&mutex_);
    if (--outstanding_ > 0) return;
    done.swap(done_);
  }
  if (done.has_value()) Complete(*std::move(done), absl::OkStatus());
}

void BackwardPass::Fail(const absl::Status& error) {
  std::vector<rpc::WorkerInfo> peers = context_->peers();
  std::optional<async::Promise<void>> done;
  {
    async::MutexLock lock(&mutex_);
    if (!done_.has_value()) return;
    done.swap(done_);
    failure_ = error;
  }
  task_->Fail(error);
  Complete(*std::move(done), error);
  const v1::BackwardPassId pass =
      ToProto(options_, context_->creator().incarnation);
  for (const rpc::WorkerInfo& peer : peers) {
    transport_->SendAbort(RunOf(peer), pass, error);
  }
}

void BackwardPass::Complete(async::Promise<void> done,
                            const absl::Status& status) {
  context_->EndPass(*this, status);
  done.Set(status);
}

std::string BackwardPass::DescribeMissing() const {
  // Ordered by id.
  std::map<uint64_t, rpc::WorkerRun> missing;
  {
    async::MutexLock lock(&mutex_);
    for (const auto& [message, send] : sends_) {
      if (fed_.contains(message) || skipped_.contains(message)) continue;
      missing.emplace(message, send->peer());
    }
  }
  std::string text;
  for (const auto& [message, peer] : missing) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", DescribeMessage(message),
                    " to worker ", peer.id.value());
  }
  return text;
}

}  // namespace hawser::dist_autograd

#include "dist_autograd/context.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "autograd/accumulate_grad.h"
#include "dist_autograd/backward_pass.h"

namespace hawser::dist_autograd {
namespace {

absl::Status ReleasedError(ContextId id) {
  return absl::FailedPreconditionError(absl::StrCat(
      "distributed autograd context ", ToString(id), " has ended"));
}

}  // namespace

Context::PeerRecord* Context::PeerLocked(const rpc::WorkerInfo& peer) {
  if (released_) return nullptr;
  PeerRecord& entry = peers_[RunOf(peer)];
  if (entry.worker.name.empty()) entry.worker = peer;
  return &entry;
}

bool Context::AddTarget(const rpc::WorkerInfo& peer) {
  async::MutexLock lock(&mutex_);
  PeerRecord* const entry = PeerLocked(peer);
  // A source has the context from another worker, which notifies it of the end.
  if (entry != nullptr && !entry->is_source) entry->is_target = true;
  return entry != nullptr;
}

void Context::AddSource(const rpc::WorkerInfo& peer) {
  async::MutexLock lock(&mutex_);
  if (PeerRecord* const entry = PeerLocked(peer)) entry->is_source = true;
}

bool Context::Reparent(const rpc::WorkerInfo& peer) {
  async::MutexLock lock(&mutex_);
  PeerRecord* const entry = PeerLocked(peer);
  if (entry != nullptr) entry->is_target = true;
  return entry != nullptr;
}

void Context::RecordSend(AutogradMessageId message, const rpc::WorkerInfo& peer,
                         const std::vector<Tensor>& tensors) {
  auto send = std::make_shared<SendFunction>(message, RunOf(peer), tensors);
  async::MutexLock lock(&mutex_);
  if (!released_) messages_.sends.push_back(std::move(send));
}

void Context::RecordRecv(AutogradMessageId message, const rpc::WorkerInfo& peer,
                         const std::vector<Tensor>& tensors) {
  std::shared_ptr<RecvFunction> recv =
      RecvFunction::Create(message, RunOf(peer), tensors, weak_from_this());
  async::MutexLock lock(&mutex_);
  if (!released_) messages_.recvs.push_back(std::move(recv));
}

std::vector<rpc::WorkerInfo> Context::peers() const {
  async::MutexLock lock(&mutex_);
  std::vector<rpc::WorkerInfo> workers;
  for (const auto& [run, peer] : peers_) workers.push_back(peer.worker);
  return workers;
}

bool Context::HasPeer(const rpc::WorkerRun& worker) const {
  async::MutexLock lock(&mutex_);
  return peers_.contains(worker);
}

bool Context::HasSource(const rpc::WorkerRun& worker) const {
  async::MutexLock lock(&mutex_);
  auto it = peers_.find(worker);
  return it != peers_.end() && it->second.is_source;
}

Context::Messages Context::messages() const {
  async::MutexLock lock(&mutex_);
  return messages_;
}

absl::Status Context::AddGradient(const Tensor& variable, Tensor gradient) {
  async::MutexLock lock(&mutex_);
  if (released_) return ReleasedError(id_);
  const auto [it, added] =
      gradient_index_.try_emplace(variable.id(), gradients_.size());
  if (added) gradients_.push_back({variable, Tensor()});
  return autograd::AddGradient(gradients_[it->second].gradient,
                               std::move(gradient));
}

absl::StatusOr<Gradients> Context::gradients() const {
  async::MutexLock lock(&mutex_);
  if (released_) return ReleasedError(id_);
  return gradients_;
}

Tensor Context::gradient(const Tensor& variable) const {
  async::MutexLock lock(&mutex_);
  auto it = gradient_index_.find(variable.id());
  return it == gradient_index_.end() ? Tensor()
                                     : gradients_[it->second].gradient;
}

absl::Status Context::BeginPass(std::shared_ptr<BackwardPass> pass) {
  async::MutexLock lock(&mutex_);
  if (released_) return ReleasedError(id_);
  if (pass_ != nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "a backward pass is running in distributed autograd context ",
        ToString(id_), ": wait for it before you start another one"));
  }
  pass_ = std::move(pass);
  return absl::OkStatus();
}

void Context::EndPass(const BackwardPass& pass, const absl::Status& status) {
  std::shared_ptr<BackwardPass> ended;
  std::shared_ptr<BackwardPass> dropped;
  std::vector<FailedPassCallback> callbacks;
  {
    async::MutexLock lock(&mutex_);
    if (pass_.get() == &pass) ended = std::move(pass_);
    if (!status.ok()) callbacks = failed_pass_callbacks_;
    if (!released_) {
      dropped = RecordEndLocked(pass.options().id, status,
                                status.ok() ? ended : nullptr);
    }
  }
  for (const FailedPassCallback& callback : callbacks) callback(status);
}

std::shared_ptr<BackwardPass> Context::RecordEndLocked(
    const BackwardPassId& id, const absl::Status& status,
    std::shared_ptr<BackwardPass> pass) {
  std::shared_ptr<BackwardPass> dropped;
  auto it = ended_.find(id.root);
  if (it == ended_.end()) {
    // Messages name the roots, so that a peer could make up any number.
    if (ended_.size() == kMaxRoots) {
      dropped = std::move(ended_.begin()->second.pass);
      ended_.erase(ended_.begin());
    }
    it = ended_.try_emplace(id.root).first;
  }
  EndedPass& last = it->second;
  if (id.number <= last.number) return dropped;
  if (last.pass != nullptr) dropped = std::move(last.pass);
  last = {id.number, status, std::move(pass)};
  return dropped;
}

absl::StatusOr<Context::Participation> Context::JoinPass(
    const BackwardPassOptions& options,
    absl::FunctionRef<std::shared_ptr<BackwardPassTransport>()>
        make_transport) {
  const BackwardPassId& id = options.id;
  // As that of a root without an ended pass.
  if (id.number == 0) {
    return absl::InvalidArgumentError("backward passes count from 1, not 0");
  }
  std::shared_ptr<BackwardPass> created;
  while (true) {
    std::shared_ptr<BackwardPass> running;
    {
      // Checks everything under one lock: while the new pass was created, other
      // messages may have started the pass and ended it.
      async::MutexLock lock(&mutex_);
      if (released_) return ReleasedError(id_);
      if (auto it = ended_.find(id.root);
          it != ended_.end() && it->second.number >= id.number) {
        if (it->second.pass != nullptr && it->second.number == id.number) {
          return Participation{it->second.pass, false};
        }
        if (it->second.number == id.number) return it->second.status;
        return absl::AbortedError("a later backward pass has ended already");
      }
      if (pass_ == nullptr && created != nullptr) {
        pass_ = created;
        return Participation{std::move(created), true};
      }
      running = pass_;
    }
    if (running == nullptr) {
      ASSIGN_OR_RETURN(created,
                       BackwardPass::Create(shared_from_this(), options, {},
                                            make_transport()));
      continue;
    }
    const BackwardPassId& other = running->options().id;
    if (other == id) return Participation{std::move(running), false};
    if (other.root != id.root) {
      return absl::FailedPreconditionError(
          absl::StrCat("a backward pass that worker ", other.root.id.value(),
                       " started is running in distributed autograd context ",
                       ToString(id_)));
    }
    if (other.number > id.number) {
      return absl::AbortedError("a later backward pass is running");
    }
    running->Fail(absl::AbortedError("a later backward pass has started"));
  }
}

std::shared_ptr<BackwardPass> Context::RefusePass(const BackwardPassId& id,
                                                  const absl::Status& status) {
  std::shared_ptr<BackwardPass> dropped;
  async::MutexLock lock(&mutex_);
  dropped = RecordEndLocked(id, status, nullptr);
  if (pass_ == nullptr || pass_->options().id != id) return nullptr;
  return pass_;
}

std::shared_ptr<BackwardPass> Context::pass() const {
  async::MutexLock lock(&mutex_);
  return pass_;
}

absl::Status Context::SendGradients(const RecvFunction& recv,
                                    std::vector<Tensor> gradients) {
  const std::shared_ptr<BackwardPass> running = pass();
  // A failed pass may still run a node after the next pass has started.
  if (running == nullptr || !running->RunsHere()) {
    return absl::FailedPreconditionError(
        absl::StrCat("a gradient must be sent to another worker: run "
                     "dist_autograd::Backward in context ",
                     ToString(id_), " instead of a local backward pass"));
  }
  return running->SendGradients(recv, std::move(gradients));
}

absl::Status Context::AddWork(const async::Future<void>& work) {
  const std::shared_ptr<BackwardPass> running = pass();
  if (running == nullptr || !running->RunsHere()) {
    return absl::FailedPreconditionError(
        absl::StrCat("work of a backward pass began outside of the passes of "
                     "distributed autograd context ",
                     ToString(id_)));
  }
  running->AddWork(work);
  return absl::OkStatus();
}

void Context::OnFailedPass(FailedPassCallback callback) {
  async::MutexLock lock(&mutex_);
  failed_pass_callbacks_.push_back(std::move(callback));
}

Context::Remains Context::Release() {
  Messages messages;
  Gradients gradients;
  absl::flat_hash_map<rpc::WorkerRun, EndedPass> ended;
  Remains remains;
  async::MutexLock lock(&mutex_);
  released_ = true;
  for (const auto& [run, peer] : peers_) {
    if (peer.is_target) remains.targets.push_back(peer.worker);
  }
  std::swap(ended, ended_);
  std::swap(messages, messages_);
  std::swap(gradients, gradients_);
  gradient_index_.clear();
  peers_.clear();
  remains.pass = std::move(pass_);
  return remains;
}

}  // namespace hawser::dist_autograd

#include "dist_autograd/end_notices.h"

#include <utility>

#include "async/task_local.h"

namespace hawser::dist_autograd {

EndNotices::EndNotices(async::Clock* clock, Send send)
    : clock_(clock), send_(std::move(send)) {}

void EndNotices::Add(ContextId context, const rpc::WorkerInfo& to) {
  const rpc::WorkerRun run = RunOf(to);
  v1::ReleaseContextRequest request;
  bool first = false;
  {
    async::MutexLock lock(&mutex_);
    auto [it, added] = outboxes_.try_emplace(run);
    first = added;
    if (first) {
      it->second.to = to;
      request.add_contexts(ToNumber(context));
    } else {
      it->second.held.add_contexts(ToNumber(context));
      if (it->second.held.contexts_size() < kMaxHeld) return;
      request.Swap(&it->second.held);
    }
  }
  if (first) BeginInterval(run);
  send_(to, request);
}

void EndNotices::BeginInterval(const rpc::WorkerRun& to) {
  // The timer is not part of the caller's task.
  async::TaskContext::Scope detached((async::TaskContext()));
  clock_->CallAfter(kInterval, [weak = weak_from_this(), to] {
    if (const auto self = weak.lock()) self->EndInterval(to);
  });
}

void EndNotices::EndInterval(const rpc::WorkerRun& to) {
  Outbox ended;
  {
    async::MutexLock lock(&mutex_);
    auto it = outboxes_.find(to);
    if (it->second.held.contexts().empty()) {
      outboxes_.erase(it);
      return;
    }
    ended.to = it->second.to;
    ended.held.Swap(&it->second.held);
  }
  BeginInterval(to);
  send_(ended.to, ended.held);
}

}  // namespace hawser::dist_autograd

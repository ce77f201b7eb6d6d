#include "net/grpc/shared_queue.h"

#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "async/mutex.h"

namespace hawser::net {

// A shared queue, and the calls on it that SharedQueue::Start has started.
class SharedQueue::State : public std::enable_shared_from_this<State> {
 public:
  explicit State(grpc::CompletionQueue* queue) : queue_(queue) {}

  // Returns null if no queue is shared.
  static std::shared_ptr<State> Last() {
    All& all = GetAll();
    async::MutexLock lock(&all.mutex);
    return all.states.empty() ? nullptr : all.states.back();
  }

  void Share() {
    All& all = GetAll();
    async::MutexLock lock(&all.mutex);
    all.states.push_back(shared_from_this());
  }

  // Returns false if the queue was withdrawn.
  bool Start(grpc::ClientContext* context,
             absl::FunctionRef<void(grpc::CompletionQueue*, Ended)> begin) {
    async::MutexLock lock(&mutex_);
    if (queue_ == nullptr) return false;
    running_.insert(context);
    begin(queue_,
          [self = shared_from_this(), context] { self->Remove(context); });
    return true;
  }

  void Remove(grpc::ClientContext* context) {
    async::MutexLock lock(&mutex_);
    running_.erase(context);
  }

  void Withdraw() {
    {
      All& all = GetAll();
      async::MutexLock lock(&all.mutex);
      std::erase(all.states, shared_from_this());
    }
    async::MutexLock lock(&mutex_);
    queue_ = nullptr;
    for (grpc::ClientContext* context : running_) context->TryCancel();
  }

 private:
  struct All {
    async::Mutex mutex;
    std::vector<std::shared_ptr<State>> states ABSL_GUARDED_BY(mutex);
  };
  // Never destroyed: clients may outlive main.
  static All& GetAll() {
    static All& all = *new All;
    return all;
  }

  async::Mutex mutex_;
  // Null once it is withdrawn.
  grpc::CompletionQueue* queue_ ABSL_GUARDED_BY(mutex_);
  // Each lives until it is removed.
  absl::flat_hash_set<grpc::ClientContext*> running_ ABSL_GUARDED_BY(mutex_);
};

SharedQueue::SharedQueue(grpc::CompletionQueue* queue)
    : state_(std::make_shared<State>(queue)) {
  state_->Share();
}

SharedQueue::~SharedQueue() { Withdraw(); }

void SharedQueue::Withdraw() { state_->Withdraw(); }

bool SharedQueue::Start(
    grpc::ClientContext* context,
    absl::FunctionRef<void(grpc::CompletionQueue*, Ended)> begin) {
  const std::shared_ptr<State> state = State::Last();
  return state != nullptr && state->Start(context, begin);
}

}  // namespace hawser::net

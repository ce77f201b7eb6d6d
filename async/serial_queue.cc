#include "async/serial_queue.h"

#include <deque>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "async/mutex.h"
#include "async/task.h"

namespace hawser::async {

class SerialQueue::State : public std::enable_shared_from_this<State> {
 public:
  explicit State(Executor* executor) : executor_(executor) {}

  void Push(Task task) {
    {
      MutexLock lock(&mutex_);
      queue_.push_back(std::move(task));
      if (running_) return;
      running_ = true;
    }
    Schedule();
  }

 private:
  // Runs a batch. If destroyed without running, drops all queued closures.
  class Turn {
   public:
    explicit Turn(std::shared_ptr<State> state) : state_(std::move(state)) {}
    Turn(Turn&&) = default;
    ~Turn() {
      if (state_ != nullptr) state_->Drop();
    }
    void operator()() && { std::exchange(state_, nullptr)->RunBatch(); }

   private:
    std::shared_ptr<State> state_;
  };

  // Closures to run before the queue yields the executor.
  static constexpr int kBatch = 32;

  void Schedule() {
    // The queue itself has no context; each task has its own.
    TaskContext::Scope scope{TaskContext()};
    executor_->Post(Turn(shared_from_this()));
  }

  void RunBatch() {
    for (int i = 0; i < kBatch; ++i) {
      Task task;
      {
        MutexLock lock(&mutex_);
        if (queue_.empty()) {
          running_ = false;
          return;
        }
        task = std::move(queue_.front());
        queue_.pop_front();
      }
      std::move(task).Run();
    }
    Schedule();
  }

  void Drop() {
    std::deque<Task> dropped;
    MutexLock lock(&mutex_);
    dropped.swap(queue_);
    running_ = false;
  }

  Executor* const executor_;
  Mutex mutex_;
  std::deque<Task> queue_ ABSL_GUARDED_BY(mutex_);
  // A turn is posted or running.
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
};

SerialQueue::SerialQueue(Executor* executor)
    : state_(std::make_shared<State>(executor)) {}

SerialQueue::~SerialQueue() = default;

void SerialQueue::Post(absl::AnyInvocable<void() &&> closure) {
  state_->Push(Task(std::move(closure)));
}

}  // namespace hawser::async

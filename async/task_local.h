#ifndef HAWSER_ASYNC_TASK_LOCAL_H_
#define HAWSER_ASYNC_TASK_LOCAL_H_

#include <atomic>
#include <cstdint>
#include <utility>

namespace hawser::async {

// The values of all TaskLocals set for one piece of work, such as its autograd
// context, its RPC and its deadline. The context propagates: a closure passed
// to an Executor, a Clock or a Future runs under the context of the thread that
// passed it.
//
// A value handle on an immutable chain. A copy costs one reference count
// increment, or nothing if no TaskLocal is set. As thread-safe as a shared_ptr.
class TaskContext {
 public:
  class Scope;

  TaskContext() = default;
  TaskContext(const TaskContext& other) : TaskContext(other.frame_) {}
  TaskContext(TaskContext&& other) noexcept
      : frame_(std::exchange(other.frame_, nullptr)) {}
  TaskContext& operator=(TaskContext other) noexcept {
    std::swap(frame_, other.frame_);
    return *this;
  }
  ~TaskContext() {
    if (frame_ != nullptr) Unref(frame_);
  }

  // Returns the context of the calling thread.
  static TaskContext Capture() { return TaskContext(current_); }

 private:
  template <class T>
  friend class TaskLocal;
  struct Frame;

  inline explicit TaskContext(const Frame* frame);
  static void Unref(const Frame* frame);
  // The innermost frame of `key` in the calling thread's context.
  static const Frame* Find(const void* key);

  static thread_local constinit const Frame* current_;

  const Frame* frame_ = nullptr;
};

// Installs a context on the calling thread until the end of the scope. Scopes
// nest and must not be held across a co_await.
class TaskContext::Scope {
 public:
  explicit Scope(TaskContext context)
      : context_(std::move(context)),
        previous_(std::exchange(current_, context_.frame_)) {}
  ~Scope() { current_ = previous_; }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  const TaskContext context_;
  // Kept alive by the enclosing scope.
  const Frame* const previous_;
};

// A variable with one value per piece of work, as a thread_local has one per
// thread. Must outlive every context that carries it: make it a static, or a
// member of an object that outlives the work.
template <class T>
class TaskLocal {
 public:
  constexpr TaskLocal() = default;
  TaskLocal(const TaskLocal&) = delete;
  TaskLocal& operator=(const TaskLocal&) = delete;

  // The value of the innermost enclosing scope, or null. Valid while that
  // scope, or a context captured in it, lives.
  const T* get() const {
    const auto* frame = static_cast<const Value*>(TaskContext::Find(this));
    return frame == nullptr ? nullptr : &frame->value;
  }

  // Sets the value until the end of the scope.
  class Scope {
   public:
    Scope(const TaskLocal& variable, T value)
        : scope_(TaskContext(new Value(&variable, TaskContext::Capture(),
                                       std::move(value)))) {}

   private:
    TaskContext::Scope scope_;
  };

 private:
  struct Value;
};

// One TaskLocal's value, on top of those set before it.
struct TaskContext::Frame {
  Frame(const void* frame_key, TaskContext below)
      : key(frame_key), parent(std::move(below)) {}
  virtual ~Frame() = default;

  const void* const key;
  // Moved out only by Unref.
  mutable TaskContext parent;
  mutable std::atomic<int64_t> references{0};
};

template <class T>
struct TaskLocal<T>::Value final : TaskContext::Frame {
  Value(const void* frame_key, TaskContext below, T initial)
      : Frame(frame_key, std::move(below)), value(std::move(initial)) {}
  const T value;
};

inline TaskContext::TaskContext(const Frame* frame) : frame_(frame) {
  if (frame_ != nullptr) {
    frame_->references.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace hawser::async

#endif  // HAWSER_ASYNC_TASK_LOCAL_H_

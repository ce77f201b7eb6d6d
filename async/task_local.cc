#include "async/task_local.h"

namespace hawser::async {

thread_local constinit const TaskContext::Frame* TaskContext::current_ =
    nullptr;

void TaskContext::Unref(const Frame* frame) {
  // Releases the chain iteratively, so that its length does not use stack.
  while (frame != nullptr &&
         frame->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    const Frame* parent = std::exchange(frame->parent.frame_, nullptr);
    delete frame;
    frame = parent;
  }
}

const TaskContext::Frame* TaskContext::Find(const void* key) {
  const Frame* frame = current_;
  while (frame != nullptr && frame->key != key) frame = frame->parent.frame_;
  return frame;
}

}  // namespace hawser::async

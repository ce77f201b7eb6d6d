#ifndef HAWSER_AUTOGRAD_GRAD_MODE_H_
#define HAWSER_AUTOGRAD_GRAD_MODE_H_

namespace hawser::autograd {

// Grad mode of the calling thread: true, as in a new thread, if operations
// record a graph. The mode is a property of the thread and does not follow work
// to other threads.
bool GradEnabled();

// Switches recording off in this thread until the end of the scope.
class [[nodiscard]] NoGradGuard {
 public:
  NoGradGuard();
  ~NoGradGuard();
  NoGradGuard(const NoGradGuard&) = delete;
  NoGradGuard& operator=(const NoGradGuard&) = delete;

 private:
  const bool previous_;
};

// Switches recording on in this thread until the end of the scope.
class [[nodiscard]] EnableGradGuard {
 public:
  EnableGradGuard();
  ~EnableGradGuard();
  EnableGradGuard(const EnableGradGuard&) = delete;
  EnableGradGuard& operator=(const EnableGradGuard&) = delete;

 private:
  const bool previous_;
};

}  // namespace hawser::autograd

#endif  // HAWSER_AUTOGRAD_GRAD_MODE_H_

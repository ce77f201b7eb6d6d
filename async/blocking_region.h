#ifndef HAWSER_ASYNC_BLOCKING_REGION_H_
#define HAWSER_ASYNC_BLOCKING_REGION_H_

namespace hawser::async {

// Observer of the blocking threads of one executor.
class BlockingObserver {
 public:
  virtual ~BlockingObserver() = default;

  // Called on the blocking thread: OnBlock before it blocks, OnUnblock after it
  // resumes.
  virtual void OnBlock() = 0;
  virtual void OnUnblock() = 0;

  // Installs `observer` on the calling thread; null removes it. Returns the
  // previous observer, or null.
  static BlockingObserver* SetForThisThread(BlockingObserver* observer);
};

// Scope around code that blocks on work which the thread's own executor may
// have to run, such as a wait on a condition variable or a synchronous call to
// another process. Future::Wait contains one. Regions nest, and cost nothing on
// a thread without an observer.
class BlockingRegion {
 public:
  BlockingRegion();
  ~BlockingRegion();
  BlockingRegion(const BlockingRegion&) = delete;
  BlockingRegion& operator=(const BlockingRegion&) = delete;

 private:
  BlockingObserver* const observer_;
};

}  // namespace hawser::async

#endif  // HAWSER_ASYNC_BLOCKING_REGION_H_

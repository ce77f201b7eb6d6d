#ifndef HAWSER_ASYNC_BLOCKING_REGION_H_
#define HAWSER_ASYNC_BLOCKING_REGION_H_

namespace hawser::async {

// Observer of the blocking threads of one executor.
class BlockingObserver {
 public:
  virtual ~BlockingObserver() = default;

  // Run on the thread that is about to block, and after it went on.
  virtual void OnBlock() = 0;
  virtual void OnUnblock() = 0;

  // Makes `observer` that of the calling thread; null for none. The one before,
  // or null.
  static BlockingObserver* SetForThisThread(BlockingObserver* observer);
};

// Stands around whatever blocks on work that the thread's own executor may
// have to run: a condition variable, a synchronous call to another process.
// Future::Wait has one. Costs nothing on a thread without observer; regions
// nest.
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

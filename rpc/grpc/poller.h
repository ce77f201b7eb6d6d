// Threads that wait on a completion queue.

#ifndef HAWSER_RPC_GRPC_POLLER_H_
#define HAWSER_RPC_GRPC_POLLER_H_

#include <memory>

#include "async/thread_pool.h"
#include "grpcpp/completion_queue.h"

namespace hawser::rpc {

// What is given to a completion queue as a tag.
class CompletionEvent {
 public:
  // Runs on a polling thread. May block inside a BlockingRegion.
  virtual void OnEvent(bool ok) = 0;

 protected:
  ~CompletionEvent() = default;
};

// Polls with `num_threads` threads; where one of them blocks in an event,
// another takes its place. `busy`: they never sleep.
class Poller {
 public:
  Poller(std::unique_ptr<::grpc::CompletionQueue> queue, int num_threads,
         bool busy);
  // Does Shutdown.
  ~Poller();

  ::grpc::CompletionQueue* queue() { return queue_.get(); }

  // No operation may be begun on the queue any more. Returns when all events
  // have been handled. Idempotent.
  void Shutdown();

 private:
  void Poll();
  // The next event; false if there will be none any more.
  bool Next(void** tag, bool* ok);

  const std::unique_ptr<::grpc::CompletionQueue> queue_;
  const bool busy_;
  async::ThreadPool threads_;
  bool shut_down_ = false;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_POLLER_H_

// Calls on a completion queue that another component polls.

#ifndef HAWSER_NET_GRPC_SHARED_QUEUE_H_
#define HAWSER_NET_GRPC_SHARED_QUEUE_H_

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/support/async_unary_call.h>
#include <grpcpp/support/status.h>

#include <memory>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "net/grpc/completion_event.h"

namespace hawser::net {

// Shares a completion queue with clients in this process that have no polling
// thread.
//
// One thread of gRPC at a time waits for all sockets of a process, whichever
// queue it polls. If a process polls several queues, a message often arrives at
// the thread of another queue, which then wakes the right one; and a thread
// that spins on its own queue sees nothing meanwhile. With gRPC's callback API
// a process has such other threads.
//
// Thread-safe.
class SharedQueue {
 public:
  using Done = absl::AnyInvocable<void(const grpc::Status&) &&>;

  // `queue` must outlive this object. The threads that poll it handle each tag
  // as a CompletionEvent.
  explicit SharedQueue(grpc::CompletionQueue* queue);
  // Calls Withdraw.
  ~SharedQueue();
  SharedQueue(const SharedQueue&) = delete;
  SharedQueue& operator=(const SharedQueue&) = delete;

  // Cancels the calls of others, whose events still arrive, and starts no more.
  // Must precede the shutdown of the queue. Idempotent.
  void Withdraw();

  // Starts a call on a queue that is shared, if there is one; otherwise returns
  // false and runs nothing. `prepare(queue)` returns the call's reader
  // (Stub::PrepareAsync...). `context` and `reply` must live until `done` runs
  // with the call's status, in a thread that polls; it may block inside a
  // BlockingRegion.
  template <class Reply, class Prepare>
  static bool StartUnary(grpc::ClientContext* context, Prepare prepare,
                         Reply* reply, Done done) {
    return Start(context, [&](grpc::CompletionQueue* queue, Ended ended) {
      auto* const call =
          new UnaryCall<Reply>(std::move(ended), std::move(done));
      call->Begin(prepare(queue), reply);
    });
  }

 private:
  class State;
  // Runs at the end of a call, before its `done`.
  using Ended = absl::AnyInvocable<void() &&>;

  // One call; deletes itself when it has ended.
  template <class Reply>
  class UnaryCall final : public CompletionEvent {
   public:
    UnaryCall(Ended ended, Done done)
        : ended_(std::move(ended)), done_(std::move(done)) {}

    // The call may end, and this object be deleted, before this returns.
    void Begin(std::unique_ptr<grpc::ClientAsyncResponseReader<Reply>> reader,
               Reply* reply) {
      reader_ = std::move(reader);
      reader_->StartCall();
      reader_->Finish(reply, &status_, static_cast<CompletionEvent*>(this));
    }

    void OnEvent(bool) override {
      const std::unique_ptr<UnaryCall> self(this);
      std::move(ended_)();
      // Lies in memory of the context, which `done_` may destroy.
      reader_.reset();
      std::move(done_)(status_);
    }
    bool spin_after() const override { return false; }

   private:
    Ended ended_;
    Done done_;
    grpc::Status status_;
    std::unique_ptr<grpc::ClientAsyncResponseReader<Reply>> reader_;
  };

  static bool Start(
      grpc::ClientContext* context,
      absl::FunctionRef<void(grpc::CompletionQueue* queue, Ended ended)> begin);

  const std::shared_ptr<State> state_;
};

}  // namespace hawser::net

#endif  // HAWSER_NET_GRPC_SHARED_QUEUE_H_

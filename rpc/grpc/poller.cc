#include "rpc/grpc/poller.h"

#include <utility>

namespace hawser::rpc {
namespace {

// As many threads may be blocked in events before polling stops.
constexpr int kMaxThreads = 256;
// Then a thread looks whether there are too many of them.
constexpr int kEventsPerTurn = 256;

}  // namespace

Poller::Poller(std::unique_ptr<::grpc::CompletionQueue> queue, int num_threads,
               bool busy)
    : queue_(std::move(queue)),
      busy_(busy),
      threads_({.num_threads = num_threads,
                .max_threads = kMaxThreads,
                .name = "rpc-poll"}) {
  // The pool runs `num_threads` of them; the others wait for one to block.
  for (int i = 0; i < kMaxThreads; ++i) threads_.Post([this] { Poll(); });
}

Poller::~Poller() { Shutdown(); }

bool Poller::Next(void** tag, bool* ok) {
  if (!busy_) return queue_->Next(tag, ok);
  while (true) {
    switch (queue_->AsyncNext(tag, ok, gpr_time_0(GPR_CLOCK_MONOTONIC))) {
      case ::grpc::CompletionQueue::GOT_EVENT:
        return true;
      case ::grpc::CompletionQueue::SHUTDOWN:
        return false;
      case ::grpc::CompletionQueue::TIMEOUT:
        break;
    }
  }
}

void Poller::Poll() {
  void* tag = nullptr;
  bool ok = false;
  for (int i = 0; i < kEventsPerTurn; ++i) {
    if (!Next(&tag, &ok)) return;
    static_cast<CompletionEvent*>(tag)->OnEvent(ok);
  }
  threads_.Post([this] { Poll(); });
}

void Poller::Shutdown() {
  if (std::exchange(shut_down_, true)) return;
  queue_->Shutdown();
  threads_.Shutdown();
}

}  // namespace hawser::rpc

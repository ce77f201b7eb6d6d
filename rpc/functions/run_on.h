// The place where a function or method runs.

#ifndef HAWSER_RPC_FUNCTIONS_RUN_ON_H_
#define HAWSER_RPC_FUNCTIONS_RUN_ON_H_

#include <string>
#include <utility>

namespace hawser::rpc {

// A thread pool, the transport's thread, or a serial queue.
class RunOn {
 public:
  enum class Kind { kPool, kInline, kQueue };

  // The agent's thread pool, or the transport's thread if earlier runs were so
  // short that handing over would take longer; if a run takes longer than
  // expected, another thread replaces that thread after a millisecond. The
  // right choice for most functions.
  static RunOn Pool() { return RunOn(Kind::kPool, ""); }
  // The transport's thread, before it processes the next message: for functions
  // that always take a few microseconds. Blocking there inside a
  // BlockingRegion, such as in a nested Sync, works but occupies a thread.
  static RunOn Inline() { return RunOn(Kind::kInline, ""); }
  // The pool, but sequentially with all functions and methods of the agent that
  // name the same queue.
  static RunOn Queue(std::string name) {
    return RunOn(Kind::kQueue, std::move(name));
  }

  Kind kind() const { return kind_; }
  const std::string& queue() const { return queue_; }

 private:
  RunOn(Kind kind, std::string queue) : kind_(kind), queue_(std::move(queue)) {}

  Kind kind_;
  std::string queue_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_FUNCTIONS_RUN_ON_H_

// Observer that counts the calls of an agent by method.

#ifndef HAWSER_RPC_TESTING_FAKES_CALL_COUNTER_H_
#define HAWSER_RPC_TESTING_FAKES_CALL_COUNTER_H_

#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "async/mutex.h"
#include "rpc/agent/call_observer.h"

namespace hawser::rpc {

// Thread-safe.
class CallCounter final : public CallObserver {
 public:
  std::unique_ptr<Call> Begin(const CallStart& start) override {
    if (start.side == CallStart::Side::kServer) return nullptr;
    async::MutexLock lock(&mutex_);
    ++counts_[std::string(start.method)][start.peer.name];
    return nullptr;
  }

  // Number of calls of `method` that this agent made, by the name of the peer.
  std::map<std::string, int> CountsOf(const std::string& method) const {
    async::MutexLock lock(&mutex_);
    const auto found = counts_.find(method);
    if (found == counts_.end()) return {};
    return found->second;
  }

 private:
  mutable async::Mutex mutex_;
  std::map<std::string, std::map<std::string, int>> counts_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TESTING_FAKES_CALL_COUNTER_H_

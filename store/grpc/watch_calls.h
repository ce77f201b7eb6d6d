// The watches of one client of a store server.

#ifndef HAWSER_STORE_GRPC_WATCH_CALLS_H_
#define HAWSER_STORE_GRPC_WATCH_CALLS_H_

#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "async/clock.h"
#include "async/future.h"
#include "proto/store.pb.h"

namespace hawser::store::internal {

// Waiting calls, each of which is repeated until the server replies to it or
// the caller cancels it. Holds no thread for them. Thread-safe.
class WatchCalls {
 public:
  // Starts one attempt, which fills `reply`. `done` runs once, in any thread.
  // The attempt keeps no reference to its arguments after `done`.
  using Attempt = std::function<void(grpc::ClientContext* context,
                                     const v1::StoreAwaitChangeRequest* request,
                                     v1::StoreAwaitChangeReply* reply,
                                     std::function<void(grpc::Status)> done)>;

  // Errors begin with `description`, the name of the store.
  WatchCalls(std::string description, Attempt attempt);
  // Waits until no attempt is running, and completes each call that has no
  // result with kCancelled.
  ~WatchCalls();
  WatchCalls(const WatchCalls&) = delete;
  WatchCalls& operator=(const WatchCalls&) = delete;

  // Completes with the values of the server's reply, or with its error. After a
  // lost connection, a shutdown of the server or a timeout the call is made
  // again.
  async::Future<std::vector<std::string>> Start(
      v1::StoreAwaitChangeRequest request);

 private:
  class Call;
  class State;
  // Starts a thread with the first pause. Outlived by the state, which a
  // callback may hold for a moment longer.
  async::RealClock clock_;
  const std::shared_ptr<State> state_;
};

}  // namespace hawser::store::internal

#endif  // HAWSER_STORE_GRPC_WATCH_CALLS_H_

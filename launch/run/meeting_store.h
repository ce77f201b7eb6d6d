#ifndef HAWSER_LAUNCH_RUN_MEETING_STORE_H_
#define HAWSER_LAUNCH_RUN_MEETING_STORE_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "launch/run/run_options.h"
#include "store/grpc/server.h"
#include "store/store.h"

namespace hawser::launch {

// The store through which the launchers of a job meet: in the memory of this
// process for a job of one node, a store server of node 0 with tcp://, which
// also ends with this object, or another store.
struct MeetingStore {
  std::unique_ptr<store::StoreServer> server = nullptr;
  std::shared_ptr<store::Store> store = nullptr;
};

// Waits up to `timeout` for the server; kCancelled once `interrupted`, which is
// asked about once a second, returns true. Credentials come from the
// environment (net::WithEnvironment). Errors are those of StoreServer::Start,
// with advice if the port is taken, and of OpenStore.
absl::StatusOr<MeetingStore> OpenMeetingStore(
    const RunOptions& options, absl::Duration timeout,
    const std::function<bool()>& interrupted);

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_RUN_MEETING_STORE_H_

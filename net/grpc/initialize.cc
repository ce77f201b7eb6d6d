#include "net/grpc/initialize.h"

#include <grpc/grpc.h>

#include "absl/synchronization/mutex.h"
#include "net/grpc/library_log.h"

namespace hawser::net {

void InitializeGrpc() {
  [[maybe_unused]] static const bool initialized = [] {
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    ForwardLibraryLogs();
    grpc_init();
    return true;
  }();
}

}  // namespace hawser::net

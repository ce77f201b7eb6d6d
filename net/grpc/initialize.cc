#include "net/grpc/initialize.h"

#include <grpc/grpc.h>

#include "net/grpc/library_log.h"

namespace hawser::net {

void InitializeGrpc() {
  [[maybe_unused]] static const bool initialized = [] {
    ForwardLibraryLogs();
    grpc_init();
    return true;
  }();
}

}  // namespace hawser::net

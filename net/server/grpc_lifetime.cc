#include "net/server/grpc_lifetime.h"

#include <grpc/grpc.h>

namespace hawser::store {

void KeepGrpcLoaded() {
  [[maybe_unused]] static const bool kept = [] {
    grpc_init();
    return true;
  }();
}

}  // namespace hawser::store

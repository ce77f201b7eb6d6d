#include "net/grpc/lifetime.h"

#include <grpc/grpc.h>

namespace hawser::net {

void KeepGrpcLoaded() {
  [[maybe_unused]] static const bool kept = [] {
    grpc_init();
    return true;
  }();
}

}  // namespace hawser::net

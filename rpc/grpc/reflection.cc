// Every server of the process serves grpc.reflection.v1alpha, as gRPC's library
// of it alone sees to.

#include "net/server/debug_services.h"

namespace hawser::rpc {
namespace {

// Takes effect on servers that are built later.
[[maybe_unused]] const bool kNoted = [] {
  net::NoteDebugServices();
  return true;
}();

}  // namespace
}  // namespace hawser::rpc

// Makes every server of the process serve grpc.reflection.v1alpha, by linking
// gRPC's reflection library.

#include "net/server/debug_services.h"

namespace hawser::rpc {
namespace {

// Applies to servers built later.
[[maybe_unused]] const bool kNoted = [] {
  net::NoteDebugServices();
  return true;
}();

}  // namespace
}  // namespace hawser::rpc

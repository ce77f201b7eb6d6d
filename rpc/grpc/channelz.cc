// Makes every server of the process serve grpc.channelz.v1.

#include "grpcpp/ext/channelz_service_plugin.h"
#include "net/server/debug_services.h"

namespace hawser::rpc {
namespace {

// Applies to servers built later.
[[maybe_unused]] const bool kServed = [] {
  net::NoteDebugServices();
  ::grpc::channelz::experimental::InitChannelzService();
  return true;
}();

}  // namespace
}  // namespace hawser::rpc

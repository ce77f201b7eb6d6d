#include "net/server/debug_services.h"

#include <atomic>

namespace hawser::net {
namespace {

// Set by static initializers, whose order is unspecified.
constinit std::atomic<bool> noted{false};

}  // namespace

void NoteDebugServices() { noted = true; }

bool HasDebugServices() { return noted; }

bool IsDebugMethod(std::string_view path) {
  return path.starts_with("/grpc.reflection.") ||
         path.starts_with("/grpc.channelz.");
}

}  // namespace hawser::net

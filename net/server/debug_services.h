// Debug services of a process: reflection and channelz.

#ifndef HAWSER_NET_SERVER_DEBUG_SERVICES_H_
#define HAWSER_NET_SERVER_DEBUG_SERVICES_H_

#include <string_view>

namespace hawser::net {

// Called, before main, by libraries that add such services to every gRPC server
// of the process.
void NoteDebugServices();
// Whether NoteDebugServices was called.
bool HasDebugServices();

// Whether `path`, "/package.Service/Method", is a method of a debug service.
bool IsDebugMethod(std::string_view path);

}  // namespace hawser::net

#endif  // HAWSER_NET_SERVER_DEBUG_SERVICES_H_

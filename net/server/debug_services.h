// Services that tell of the inside of a process: reflection and channelz.

#ifndef HAWSER_NET_SERVER_DEBUG_SERVICES_H_
#define HAWSER_NET_SERVER_DEBUG_SERVICES_H_

#include <string_view>

namespace hawser::net {

// Libraries that have gRPC serve them from every server of the process say so,
// before main.
void NoteDebugServices();
// Whether one did.
bool HasDebugServices();

// Whether `path`, "/package.Service/Method", is of one of them.
bool IsDebugMethod(std::string_view path);

}  // namespace hawser::net

#endif  // HAWSER_NET_SERVER_DEBUG_SERVICES_H_

// Files that a process would leave in file systems if it were killed now.

#ifndef HAWSER_RPC_TESTING_FILESYSTEM_FOOTPRINT_H_
#define HAWSER_RPC_TESTING_FILESYSTEM_FOOTPRINT_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace hawser::rpc {

// The files that the process `pid` shares memory through, and the paths of its
// Unix sockets, as far as they have names: not those that were deleted or never
// had one. Of a process of this user on this machine that is alive.
std::vector<std::string> FilesystemFootprintOf(pid_t pid);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TESTING_FILESYSTEM_FOOTPRINT_H_

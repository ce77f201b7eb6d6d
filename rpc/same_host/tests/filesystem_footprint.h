// Files that a process would leave behind if it were killed now.

#ifndef HAWSER_RPC_SAME_HOST_TESTS_FILESYSTEM_FOOTPRINT_H_
#define HAWSER_RPC_SAME_HOST_TESTS_FILESYSTEM_FOOTPRINT_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace hawser::rpc {

// Returns the named files through which process `pid` shares memory, and the
// paths of its Unix sockets, except deleted and unnamed ones. The process must
// be alive and belong to this user.
std::vector<std::string> FilesystemFootprintOf(pid_t pid);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_SAME_HOST_TESTS_FILESYSTEM_FOOTPRINT_H_

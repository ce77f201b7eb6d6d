// Groups inside one process.

#ifndef HAWSER_COLLECTIVES_LOOPBACK_BACKEND_H_
#define HAWSER_COLLECTIVES_LOOPBACK_BACKEND_H_

#include <memory>
#include <vector>

#include "collectives/backend.h"

namespace hawser::collectives {

// The ranks of a group of `size` threads of this process, each for one thread;
// of size 1, for a program that is not distributed. Runs the code of the host
// backend, on memory of the process.
std::vector<std::unique_ptr<Backend>> MakeLoopbackBackends(int size);

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_LOOPBACK_BACKEND_H_

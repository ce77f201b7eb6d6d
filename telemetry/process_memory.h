// Memory of this process.

#ifndef HAWSER_TELEMETRY_PROCESS_MEMORY_H_
#define HAWSER_TELEMETRY_PROCESS_MEMORY_H_

#include <cstddef>

namespace hawser::telemetry {

// Bytes of the process that are in memory now; 0 if /proc cannot be read.
size_t ResidentBytes();

// Bytes that the process may use: the memory of the machine, or less if a
// control group (memory.max) or a resource limit (RLIMIT_AS, RLIMIT_DATA) says
// so.
size_t UsableMemoryBytes();

// Returns freed memory to the operating system.
void ReturnFreedMemory();

}  // namespace hawser::telemetry

#endif  // HAWSER_TELEMETRY_PROCESS_MEMORY_H_

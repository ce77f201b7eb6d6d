// Numbers of what the calling process holds.

#ifndef HAWSER_TESTS_FAULTS_PROCESS_COUNTS_H_
#define HAWSER_TESTS_FAULTS_PROCESS_COUNTS_H_

#include <dirent.h>

#include <cstdint>

namespace hawser::tests {

// Number of entries of a directory whose names do not begin with a dot; -1 if
// it cannot be read.
inline int64_t CountEntries(const char* directory) {
  DIR* const entries = opendir(directory);
  if (entries == nullptr) return -1;
  int64_t count = 0;
  while (const dirent* entry = readdir(entries)) {
    if (entry->d_name[0] != '.') ++count;
  }
  closedir(entries);
  return count;
}

inline int64_t CountThreads() { return CountEntries("/proc/self/task"); }

// Without the descriptor that counting uses.
inline int64_t CountDescriptors() { return CountEntries("/proc/self/fd") - 1; }

}  // namespace hawser::tests

#endif  // HAWSER_TESTS_FAULTS_PROCESS_COUNTS_H_

// A trainer of a click model on a table, in a process of its own.

#ifndef HAWSER_BENCHMARKS_CLICK_TRAINER_H_
#define HAWSER_BENCHMARKS_CLICK_TRAINER_H_

#include <cstdint>
#include <string>

#include "ps/storage/table_spec.h"

namespace hawser::benchmarks {

inline constexpr int64_t kClickRows = 100'000;
inline constexpr int64_t kClickWidth = 64;
inline constexpr int64_t kClickBatch = 512;
inline constexpr int64_t kClickIds = 26;

// The table, which SGD updates.
ps::TableSpec ClickTable();

// Trains a network 64-64-1 over the sums of 26 rows a sample, which the server
// "ps0" adds, as benchmarks/peers/ps_torch.py does. Prints "ready", then, for
// each line of standard input, a number of steps, runs these steps and prints
// "done". Returns the process's exit code.
int TrainClicks(const std::string& store_address, int index);

}  // namespace hawser::benchmarks

#endif  // HAWSER_BENCHMARKS_CLICK_TRAINER_H_

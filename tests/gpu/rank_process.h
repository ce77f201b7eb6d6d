// A rank of a test on GPUs, which tests/gpu/run_ranks.sh has started.

#ifndef HAWSER_TESTS_GPU_RANK_PROCESS_H_
#define HAWSER_TESTS_GPU_RANK_PROCESS_H_

#include <memory>

#include "store/store.h"

namespace hawser::tests {

struct RankProcess {
  int rank = 0;
  int size = 1;
};

// From HAWSER_GPU_TEST_RANK and HAWSER_GPU_TEST_SIZE; without, a single rank.
RankProcess GetRankProcess();

// The n-th store that all ranks have opened in this order, in the folder
// HAWSER_GPU_TEST_DIR.
std::unique_ptr<store::Store> OpenNextStore();

// Whether this machine has a GPU.
bool HasGpu();

}  // namespace hawser::tests

#endif  // HAWSER_TESTS_GPU_RANK_PROCESS_H_

// The side of the measurement of communication that a backward pass hides.

#ifndef HAWSER_BENCHMARKS_GROUPS_OVERLAP_SIDE_H_
#define HAWSER_BENCHMARKS_GROUPS_OVERLAP_SIDE_H_

#include "benchmarks/groups/group_processes.h"

namespace hawser::benchmarks {

// Trains a perceptron 784-1024-...-1024-10 with eight hidden layers, 33 MB of
// gradients, with batches of 1280 on each rank. The reply to a request is a
// time in milliseconds:
//
//   overlap        a step of DistributedDataParallel
//   serial         the same step, but the reductions of all buckets begin when
//                  the last one is ready: when the backward pass has computed
//                  all gradients
//   alone          a step without communication, on all ranks at once
//   backward       the backward pass of such a step
//   communication  the reductions of a step, one after the other, without
//                  computing
GroupReply MakeOverlapReply(collectives::ProcessGroup& group);

}  // namespace hawser::benchmarks

#endif  // HAWSER_BENCHMARKS_GROUPS_OVERLAP_SIDE_H_

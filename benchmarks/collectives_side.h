// Hawser's side of the benchmark of collectives.

#ifndef HAWSER_BENCHMARKS_COLLECTIVES_SIDE_H_
#define HAWSER_BENCHMARKS_COLLECTIVES_SIDE_H_

#include "benchmarks/groups/group_processes.h"

namespace hawser::benchmarks {

// As ServeGroup. The reply to a request is the time of one operation in
// microseconds: the median of three turns.
//
//   all_reduce BYTES      of a vector of f32 in each process, in place
//   all_gather BYTES      into a vector of BYTES bytes
//   reduce_scatter BYTES  of a vector of BYTES bytes in each process
//   broadcast BYTES       from rank 0
//   sum BYTES             all processes add one vector to another at once,
//                         without communication: the limit of the memory
int ServeCollectives(const ServeGroupOptions& options);

}  // namespace hawser::benchmarks

#endif  // HAWSER_BENCHMARKS_COLLECTIVES_SIDE_H_

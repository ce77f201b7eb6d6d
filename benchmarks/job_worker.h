// One worker of the benchmark of job sizes: the process that it runs in.

#ifndef HAWSER_BENCHMARKS_JOB_WORKER_H_
#define HAWSER_BENCHMARKS_JOB_WORKER_H_

#include <string>

namespace hawser::benchmarks {

// Number of workers of the job, and the address at which rank 0 serves the
// store.
struct JobPlan {
  int num_workers = 0;
  std::string master;
};

// Reads requests from standard input, one per line, and prints the reply to
// each, "<request>: ok <number>" or "<request>: error <text>". Numbers that are
// not described have no meaning.
//
//   join             starts a worker with default options; it has joined
//   call             calls rank 0
//   call_all ROUNDS  calls each other worker, ROUNDS times
//   send CALLS MIB   sends as many tensors of MIB MiB to rank 0, one in flight
//   lost             replies with the number of workers that this one declared
//                    lost; itself counts if others did so
//   store_calls      at rank 0: replies with the number of calls that its store
//                    has received
//   leave            shuts down gracefully; the worker has left
//
// Ends at the end of standard input. Returns the exit code.
int RunJobWorker(const JobPlan& plan, int rank);

}  // namespace hawser::benchmarks

#endif  // HAWSER_BENCHMARKS_JOB_WORKER_H_

// Random use of streams in a simulated job, checked against the guarantees of
// docs/rpc/streams.md.

#ifndef HAWSER_RPC_STREAM_TESTING_STREAM_WORKLOAD_H_
#define HAWSER_RPC_STREAM_TESTING_STREAM_WORKLOAD_H_

#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/agent_options.h"
#include "rpc/stream/stream.h"
#include "rpc/stream/stream_function.h"
#include "rpc/testing/cluster_simulation.h"

namespace hawser::rpc {

// Workers that read numbers from each other. Violations are failures of the
// job, which must be destroyed first. Not thread-safe.
class StreamWorkload {
 public:
  // Longer than the duration of any stream.
  static constexpr absl::Duration kLongest = absl::Seconds(15);

  // Adds a StreamService to a starting worker.
  static void AddService(AgentOptions& options);
  // Registers the functions. Call before workers start.
  void Attach(ClusterSimulation* job);

  void OpenRandomStream();

  // Fails unless both ends of all streams have ended. Call after kLongest.
  void CheckEnds();
  // Reads streams over each pair of workers, for which there must be no fault:
  // one in each of `rounds`. With kAllRounds they are more than a worker serves
  // to another at once.
  void CheckThatAllCanStream(int rounds);
  static constexpr int kAllRounds = 5;

 private:
  // History of one stream, at both ends.
  struct Trace {
    int64_t count = 0;
    bool fails = false;
    int window = 1;
    int num_started = 0;
    bool writer_ended = false;
    // Number of values accepted by Write.
    int64_t num_written = 0;
    int64_t num_read = 0;
    bool reader_ended = false;
  };

  async::Future<void> Write(StreamWriter<int64_t> out, int64_t stream,
                            int64_t count, bool fails);
  // Reads at most `to_read` values, with a delay before each. The delay is a
  // call of the same agent, so that it ends before the agent does.
  async::Future<void> Read(Agent& agent, StreamReader<int64_t> reader,
                           int64_t stream, int64_t to_read, int64_t pause_ms);
  void CheckEnd(int64_t stream, bool ended, const absl::Status& error);
  async::Future<void> After(absl::Duration time);
  int64_t Begin(int64_t count, bool fails, int window);
  void Open(int64_t stream, int from, int to, const StreamOptions& options,
            int64_t to_read, int64_t pause_ms);

  ClusterSimulation* job_ = nullptr;
  // Streams by number.
  std::map<int64_t, Trace> traces_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_STREAM_TESTING_STREAM_WORKLOAD_H_

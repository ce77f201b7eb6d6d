// NCCL on memory of the CPU, for tests.

#ifndef HAWSER_COLLECTIVES_NCCL_TESTING_FAKE_LIBRARY_H_
#define HAWSER_COLLECTIVES_NCCL_TESTING_FAKE_LIBRARY_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/mutex.h"
#include "collectives/backend.h"
#include "collectives/nccl/library.h"
#include "tensor/device.h"

namespace hawser::collectives {

// A machine on which ranks are threads. Operations run once all ranks have
// enqueued them, in the order of each stream, as NCCL's do; calls of one NCCL
// group run together. Records the calls, and fails those that a test chooses.
// Thread-safe.
class FakeNcclMachine : public std::enable_shared_from_this<FakeNcclMachine> {
 public:
  FakeNcclMachine();
  // No communicator is left.
  ~FakeNcclMachine();

  // NCCL as the process of `rank` sees it. `device`: of the memory, which is
  // the CPU's in any case.
  std::unique_ptr<NcclLibrary> MakeLibrary(
      int rank, tensor::Device device = tensor::kCpu);

  // Fails the next call of the function, such as "ncclAllReduce", by the rank.
  void FailNext(int rank, const std::string& function,
                const absl::Status& status);
  // GetAsyncError of all communicators of the rank returns it, once the rank
  // has called the function again.
  void SetAsyncErrorAfter(int rank, const std::string& function,
                          const absl::Status& status);
  // The device of the rank does not run what is enqueued from now on.
  void StopDevice(int rank);

  // Functions that the process of the rank has called, in their order, without
  // those that look whether something has ended.
  std::vector<std::string> Calls(int rank) const;
  // The threads that have called functions of a communicator of the rank.
  int NumThreads(int rank) const;
  int NumCommunicators() const;
  // What the communicators were made with.
  std::vector<NcclConfig> Configs(int rank) const;

 private:
  friend class FakeNcclCommunicator;
  friend class FakeNcclLibrary;
  struct Rank;
  struct Operation;
  struct Stream;
  struct Clique;

  // Records the call; the error that the test has chosen for it.
  absl::Status Call(int rank, const std::string& function);
  Rank& RankOf(int rank) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Runs all that can run.
  void RunReady(Clique& clique) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool RunCollective(Clique& clique) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool RunMessage(Clique& clique) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns whether a group has ended.
  bool PopDone(Stream& stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable async::Mutex mutex_;
  int next_id_ ABSL_GUARDED_BY(mutex_) = 0;
  int num_communicators_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int, Rank> ranks_ ABSL_GUARDED_BY(mutex_);
  std::map<NcclId, std::shared_ptr<Clique>> cliques_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_NCCL_TESTING_FAKE_LIBRARY_H_

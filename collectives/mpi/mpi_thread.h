// The thread that calls MPI.

#ifndef HAWSER_COLLECTIVES_MPI_MPI_THREAD_H_
#define HAWSER_COLLECTIVES_MPI_MPI_THREAD_H_

#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/mutex.h"

namespace hawser::collectives {

// OK, or the text of MPI's error, with the function: kInternal.
absl::Status MpiStatus(int error, const std::string& function);

// MPI exists once in a process, and so does this: MPI can be begun only once,
// and one thread makes all calls of it (MPI_THREAD_FUNNELED). The thread ends
// MPI when the process exits. If the program has begun MPI itself, with
// MPI_THREAD_SERIALIZED at least, it must not call MPI at the same time as
// groups exist, and ends MPI itself after them.
class MpiThread {
 public:
  // Looks for what MPI has done; runs in the thread.
  class Poller {
   public:
    virtual ~Poller() = default;
    // Returns whether there was something.
    virtual bool Poll() = 0;
  };

  // Begins MPI at the first call.
  //
  //   kFailedPrecondition  the program has begun MPI without threads, or has
  //                        ended it.
  //   kInternal            MPI cannot begin.
  static absl::StatusOr<MpiThread*> Get();

  // Of MPI_COMM_WORLD.
  int rank() const { return rank_; }
  int size() const { return size_; }

  // Runs `call` in the thread.
  void Post(absl::AnyInvocable<void()> call);
  // The same, and returns its result. Not for calls from the thread.
  absl::Status Run(absl::AnyInvocable<absl::Status()> call);

  // In the thread. Not within Poll.
  void Add(Poller* poller) { pollers_.push_back(poller); }
  void Remove(Poller* poller);

 private:
  MpiThread();

  absl::Status Begin();
  void Loop();
  // Runs what was posted. Returns false once the process exits.
  bool RunPosted(bool may_sleep);
  void End();

  absl::Status begun_;
  bool ends_mpi_ = false;
  int rank_ = 0;
  int size_ = 1;
  // Of the thread.
  std::vector<Poller*> pollers_;

  async::Mutex mutex_;
  async::CondVar posted_;
  bool exiting_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<absl::AnyInvocable<void()>> calls_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_MPI_MPI_THREAD_H_

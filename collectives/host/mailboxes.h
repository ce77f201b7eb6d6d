// Messages between the ranks of a group.

#ifndef HAWSER_COLLECTIVES_HOST_MAILBOXES_H_
#define HAWSER_COLLECTIVES_HOST_MAILBOXES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/mutex.h"
#include "collectives/backend.h"
#include "collectives/host/message_pipe.h"
#include "collectives/host/shared_wait.h"

namespace hawser::collectives {

// The sends and receives of one rank: Backend. Bytes go straight from the
// memory of the sender through a ring to that of the receiver; a message that
// comes before its receive, and behind which another one is wanted, is kept
// aside.
//
// A thread that waits for an operation moves the bytes itself; a thread of this
// object does while operations are under way for which none waits. To cancel an
// operation aborts the group. Thread-safe.
class Mailboxes {
 public:
  // `wait` must outlive this.
  explicit Mailboxes(SharedWait& wait);
  // Cancels all operations.
  ~Mailboxes();

  async::Future<void> Send(ConstBytes data, int to, uint32_t tag,
                           async::MonotonicTime deadline);
  async::Future<int> Receive(MutableBytes data, int from, uint32_t tag,
                             async::MonotonicTime deadline);
  // The group was aborted: ends all operations with its status.
  void OnAborted();

 private:
  class Poller;

  struct Header {
    uint64_t bytes = 0;
    uint32_t tag = 0;
    uint32_t unused = 0;
  };
  struct Outgoing {
    Header header;
    size_t header_sent = 0;
    ConstBytes rest;
    int to = 0;
    async::MonotonicTime deadline = async::kNever;
    async::Promise<void> done;
  };
  struct Incoming {
    MutableBytes data;
    int from = Backend::kAnyRank;
    uint32_t tag = 0;
    async::MonotonicTime deadline = async::kNever;
    async::Promise<int> done;
  };
  // A message that was not received yet.
  struct Kept {
    uint32_t tag = 0;
    std::vector<std::byte> data;
  };
  // The stream of one sender.
  struct Source {
    Header header;
    size_t header_bytes = 0;
    // Of the message whose header was read, if its bytes are being read:
    bool reading = false;
    std::optional<Incoming> receive;
    absl::Status mismatch;
    std::vector<std::byte> aside;
    size_t done = 0;
    std::deque<Kept> kept;
  };
  // Calls that complete futures, without the lock.
  using Completions = std::vector<absl::AnyInvocable<void()>>;

  // Moves what can be moved. Returns false if that was nothing.
  bool MoveBytes() ABSL_LOCKS_EXCLUDED(mutex_);
  bool WriteTo(int to, Completions& completions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool ReadFrom(int from, Completions& completions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Finds who gets the message of `source.header`. False: nobody, for now.
  bool BeginMessage(int from, Source& source)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndMessage(int from, Source& source, Completions& completions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TakeKept(Incoming& receive, Completions& completions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status MismatchOf(const Incoming& receive, int from,
                          uint64_t bytes) const;
  // Announces that a ring of `rank` was written or read.
  void Ring(int rank);
  // Moves bytes until `done()` or there have been none for some time.
  void Poll(absl::FunctionRef<bool()> done);

  bool idle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return num_outgoing_ == 0 && num_incoming_ == 0;
  }
  async::MonotonicTime NextDeadline() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of the ranks that an operation needs.
  absl::Status CheckPeers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status LateOperation() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FailAll(const absl::Status& status);
  // A thread does not poll any more.
  void OnPolled();
  // Has the thread move bytes from now on.
  void WakeThread();
  void Run();
  void WaitForBytes(uint32_t doorbell);

  SharedWait& wait_;
  const int rank_;
  const int size_;
  const std::shared_ptr<Poller> poller_;

  async::Mutex mutex_;
  async::CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t num_outgoing_ ABSL_GUARDED_BY(mutex_) = 0;
  // Posted and being read.
  int64_t num_incoming_ ABSL_GUARDED_BY(mutex_) = 0;
  // By receiver.
  std::vector<std::deque<Outgoing>> outgoing_ ABSL_GUARDED_BY(mutex_);
  // In the order of Receive.
  std::list<Incoming> incoming_ ABSL_GUARDED_BY(mutex_);
  // By sender.
  std::vector<Source> sources_ ABSL_GUARDED_BY(mutex_);
  std::vector<MessagePipe> pipes_to_ ABSL_GUARDED_BY(mutex_);
  std::vector<MessagePipe> pipes_from_ ABSL_GUARDED_BY(mutex_);
  // Started with the first operation that does not end at once.
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_HOST_MAILBOXES_H_

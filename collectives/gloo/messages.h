// Messages between the ranks of a mesh.

#ifndef HAWSER_COLLECTIVES_GLOO_MESSAGES_H_
#define HAWSER_COLLECTIVES_GLOO_MESSAGES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/mutex.h"
#include "collectives/backend.h"
#include "collectives/gloo/mesh.h"
#include "collectives/gloo/transfer.h"

namespace hawser::collectives {

// The sends and receives of one rank: Backend.
//
//   1. The sender announces a message by a frame, which holds the data if they
//      are short, and begins the transfer of others.
//   2. The receiver looks for a receive (Match). It copies the data of the
//      frame, or receives the transfer (Run).
//   3. It tells the sender, whose future completes.
//
// To cancel an operation ends the group. Thread-safe.
class Messages {
 public:
  // `mesh` must outlive this, and call OnFrame and OnFailure.
  explicit Messages(Mesh& mesh);
  // The mesh has stopped to call. Cancels all operations.
  ~Messages();

  async::Future<void> Send(ConstBytes data, int to, uint32_t tag,
                           async::MonotonicTime deadline);
  async::Future<int> Receive(MutableBytes data, int from, uint32_t tag,
                             async::MonotonicTime deadline);

  void OnFrame(int from, const Mesh::Frame& frame, ConstBytes text);
  void OnFailure(const absl::Status& status);

 private:
  // For callbacks of futures, which may outlive the object.
  struct Handle;

  struct Outgoing {
    ConstBytes data;
    uint32_t tag = 0;
    async::MonotonicTime deadline = async::kNever;
    std::unique_ptr<Transfer> transfer = nullptr;
    async::Promise<void> done = {};
  };
  struct Incoming {
    MutableBytes data;
    int from = Backend::kAnyRank;
    uint32_t tag = 0;
    async::MonotonicTime deadline = async::kNever;
    async::Promise<int> done = {};
  };
  struct Announced {
    int from = 0;
    Mesh::Frame frame;
    std::vector<std::byte> text;
  };
  struct Running {
    Incoming receive;
    int from = 0;
    uint64_t number = 0;
    std::unique_ptr<Transfer> transfer;
  };
  using OutgoingKey = std::pair<int, uint64_t>;
  // Calls that complete futures and send frames, without the lock.
  using Completions = std::vector<absl::AnyInvocable<void()>>;

  bool IsFor(const Incoming& receive, const Announced& message) const {
    return message.frame.tag == receive.tag &&
           (receive.from == Backend::kAnyRank || receive.from == message.from);
  }
  void Match(Incoming receive, Announced message, Completions& completions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Acknowledge(int to, uint64_t number, Completions& completions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  template <class T>
  void CancelEndsGroup(async::Promise<T>& promise);

  void Run();
  // Ends the group if the deadline of an operation has passed; otherwise sets
  // `next` to the first one.
  absl::Status FindLate(async::MonotonicTime& next)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Finish(Running running);
  void EndAll(const absl::Status& status);

  Mesh& mesh_;
  const std::shared_ptr<Handle> handle_;

  async::Mutex mutex_;
  async::CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  // Of the next message, by receiver.
  std::vector<uint64_t> next_number_ ABSL_GUARDED_BY(mutex_);
  std::map<OutgoingKey, Outgoing> outgoing_ ABSL_GUARDED_BY(mutex_);
  // In the order of Receive.
  std::list<Incoming> incoming_ ABSL_GUARDED_BY(mutex_);
  // In the order of their arrival; none is for one of incoming_.
  std::list<Announced> announced_ ABSL_GUARDED_BY(mutex_);
  std::deque<Running> running_ ABSL_GUARDED_BY(mutex_);
  // Waits for transfers and deadlines.
  std::thread thread_;
};

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_GLOO_MESSAGES_H_

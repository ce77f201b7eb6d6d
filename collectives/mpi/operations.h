// Operations of MPI that are under way.

#ifndef HAWSER_COLLECTIVES_MPI_OPERATIONS_H_
#define HAWSER_COLLECTIVES_MPI_OPERATIONS_H_

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/clock.h"
#include "async/future.h"
#include "collectives/backend.h"
#include "collectives/mpi/mpi_thread.h"

namespace hawser::collectives {

// The operations of one rank of a group. MPI cannot end an operation before
// its counterparts on the other ranks: one that has failed is abandoned, with
// the memory that MPI may still use, which is this object's own. Data is
// therefore copied to and from memory of the caller, once each way.
//
// The methods post to the thread that calls MPI, and may be called by any.
class MpiOperations final : public MpiThread::Poller,
                            public std::enable_shared_from_this<MpiOperations> {
 public:
  // Tags above belong to the group itself.
  static constexpr uint32_t kMaxTag = (uint32_t{1} << 30) - 1;

  // Begins an operation that does not block. Runs in the thread.
  using Start = absl::AnyInvocable<absl::StatusOr<MPI_Request>()>;

  // Takes over two communicators of the same ranks.
  MpiOperations(MpiThread& thread, MPI_Comm collectives, MPI_Comm messages,
                int rank, int size);

  void Open();
  // Ends all operations with kCancelled. Called once; the object lives until
  // MPI has ended what was abandoned.
  void Close();

  MPI_Comm collectives() const { return collectives_; }

  // Completes once the operation has, or with kDeadlineExceeded. It belongs to
  // the `number`-th collective; `memory` is that of the operation.
  async::Future<void> Run(int64_t number, Start start,
                          std::shared_ptr<void> memory,
                          async::MonotonicTime deadline);

  async::Future<void> Send(ConstBytes data, int to, uint32_t tag,
                           async::MonotonicTime deadline);
  async::Future<int> Receive(MutableBytes data, int from, uint32_t tag,
                             async::MonotonicTime deadline);

  // Ends all operations, here with `status` and on the other ranks with
  // kAborted. The first call wins.
  void Abort(const absl::Status& status);
  // Ends collectives after the first `number` ones with `status`. The first
  // call wins.
  void EndAfter(int64_t number, const absl::Status& status);

  bool Poll() override;

 private:
  using Memory = std::shared_ptr<std::byte[]>;

  struct Collective {
    int64_t number = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    std::shared_ptr<void> memory = nullptr;
    async::MonotonicTime deadline = async::kNever;
    async::Promise<void> done = {};
  };
  struct Outgoing {
    MPI_Request request = MPI_REQUEST_NULL;
    Memory memory = nullptr;
    size_t bytes = 0;
    int to = 0;
    uint32_t tag = 0;
    async::MonotonicTime deadline = async::kNever;
    async::Promise<void> done = {};
  };
  struct Incoming {
    MutableBytes data;
    int from = Backend::kAnyRank;
    uint32_t tag = 0;
    async::MonotonicTime deadline = async::kNever;
    // Once a message was found:
    MPI_Request request = MPI_REQUEST_NULL;
    Memory memory = nullptr;
    size_t bytes = 0;
    async::Promise<int> done = {};
  };
  struct Abandoned {
    MPI_Request request = MPI_REQUEST_NULL;
    std::shared_ptr<void> memory = nullptr;
  };

  // In the thread.
  bool PollAborts();
  bool PollCollectives(async::MonotonicTime now);
  bool PollSends(async::MonotonicTime now);
  bool PollReceives(async::MonotonicTime now);
  // Looks for a message, and begins to receive it.
  absl::StatusOr<bool> Match(Incoming& receive);
  bool PollAbandoned();
  // True once the request is complete.
  static absl::StatusOr<bool> Test(MPI_Request& request);
  void Fail(const absl::Status& status);
  // Fail, and tells the other ranks.
  void FailAll(const absl::Status& status);
  void Release();

  MpiThread& thread_;
  const MPI_Comm collectives_;
  const MPI_Comm messages_;
  const int rank_;
  const int size_;

  // Of the thread.
  absl::Status failure_;
  // Why collectives after `last_number_` end.
  absl::Status end_;
  int64_t last_number_ = 0;
  bool closed_ = false;
  // The group ends without an error: the communicators can be freed.
  bool healthy_ = false;
  std::list<Collective> running_;
  std::list<Outgoing> outgoing_;
  // In the order of Receive.
  std::list<Incoming> incoming_;
  std::list<Abandoned> abandoned_;
  // Keeps the object while it is registered.
  std::shared_ptr<MpiOperations> self_;
};

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_MPI_OPERATIONS_H_

// A group of processes that run collectives.

#ifndef HAWSER_COLLECTIVES_PROCESS_GROUP_H_
#define HAWSER_COLLECTIVES_PROCESS_GROUP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/mutex.h"
#include "async/thread_pool.h"
#include "collectives/backend.h"
#include "collectives/collective_call.h"
#include "collectives/p2p_op.h"
#include "collectives/reduce_op.h"
#include "tensor/tensor.h"

namespace hawser::collectives {

using tensor::Tensor;

// The result of an operation that runs in the background.
using Work = async::Future<void>;

struct ProcessGroupOptions {
  // Names the group in errors.
  std::string name = "default";
  // Of each operation.
  absl::Duration timeout = absl::Minutes(30);
  // Before each collective, the ranks compare what they are about to run, which
  // takes a step of its own. A difference is kInvalidArgument on all ranks, and
  // names the ranks and both calls; without the check, ranks that call
  // different operations wait for each other until the timeout, or get wrong
  // data.
  bool check_calls = false;
};

// One rank of a group. All ranks call the same collectives in the same order,
// with tensors of the same dtypes and sizes, on the device that the backend
// serves (Backend::ForDevice). Ranks and roots are numbers of the group, from
// 0.
//
// A method blocks, and runs in the calling thread; its twin `...Async` runs in
// the background, in order with all others, and its tensors must not be used
// until its Work has completed. Results are written into the given tensors,
// which are handles. Tensors need not be contiguous;
// those that are save a copy. Tensors are not recorded by autograd.
//
// An operation on tensors of a GPU reads them after the work that the calling
// thread has enqueued before, runs beside what is enqueued later, and ends once
// the device has written the results.
//
// Thread-safe, but the order of concurrent calls is not defined.
//
// Errors:
//   kInvalidArgument     wrong arguments, found before anything is sent. The
//                        group stays usable, if all ranks get it.
//   kUnimplemented       the backend does not have this reduction for this
//                        dtype. The group stays usable.
//   kDeadlineExceeded    the timeout passed; names the ranks that did not take
//                        part.
//   kUnavailable         a rank has died; names it.
//   kAborted             another rank has ended the group; gives its reason.
//   kFailedPrecondition  an earlier operation has failed: the group cannot be
//                        used any more. Make a new one of the ranks that are
//                        left.
class ProcessGroup {
 public:
  // MakeProcessGroup (collectives/make_group.h) connects the backends of
  // processes.
  ProcessGroup(std::unique_ptr<Backend> backend, int rank, int size,
               ProcessGroupOptions options = {});
  // Operations that run in the background end first, or with kAborted on all
  // ranks if they have not within a second.
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  const std::string& name() const { return options_.name; }
  // "host", "gloo", "loopback", "nccl", "mpi".
  std::string_view backend() const { return backend_->name(); }
  absl::Duration timeout() const { return options_.timeout; }

  // Returns once all ranks have called it, and all operations that this rank
  // has started before have ended.
  absl::Status Barrier();
  Work BarrierAsync();

  // Replaces the tensor of each rank by that of `root`.
  absl::Status Broadcast(Tensor tensor, int root);
  Work BroadcastAsync(Tensor tensor, int root);

  // Replaces the tensor of each rank by the reduction of all of them. With
  // several tensors, which have one dtype, as if each was reduced by itself,
  // but in one operation.
  absl::Status AllReduce(Tensor tensor, ReduceOp op = ReduceOp::kSum);
  absl::Status AllReduce(std::vector<Tensor> tensors,
                         ReduceOp op = ReduceOp::kSum);
  Work AllReduceAsync(Tensor tensor, ReduceOp op = ReduceOp::kSum);
  Work AllReduceAsync(std::vector<Tensor> tensors,
                      ReduceOp op = ReduceOp::kSum);

  // Replaces the tensor of `root` by the reduction. Those of the others stay.
  absl::Status Reduce(Tensor tensor, int root, ReduceOp op = ReduceOp::kSum);
  Work ReduceAsync(Tensor tensor, int root, ReduceOp op = ReduceOp::kSum);

  // Writes the input of rank i to `outputs[i]`, or to the i-th of size() equal
  // parts of `output`, in row-major order.
  absl::Status AllGather(Tensor input, std::vector<Tensor> outputs);
  absl::Status AllGather(Tensor input, Tensor output);
  Work AllGatherAsync(Tensor input, std::vector<Tensor> outputs);
  Work AllGatherAsync(Tensor input, Tensor output);

  // The same on `root` only. The others pass no outputs.
  absl::Status Gather(Tensor input, std::vector<Tensor> outputs, int root);
  Work GatherAsync(Tensor input, std::vector<Tensor> outputs, int root);

  // Writes `inputs[i]` of `root` to the output of rank i. The others pass no
  // inputs.
  absl::Status Scatter(std::vector<Tensor> inputs, Tensor output, int root);
  Work ScatterAsync(std::vector<Tensor> inputs, Tensor output, int root);

  // Writes the reduction of all ranks' `inputs[i]`, or of the i-th of size()
  // equal parts of `input`, to the output of rank i.
  absl::Status ReduceScatter(std::vector<Tensor> inputs, Tensor output,
                             ReduceOp op = ReduceOp::kSum);
  absl::Status ReduceScatter(Tensor input, Tensor output,
                             ReduceOp op = ReduceOp::kSum);
  Work ReduceScatterAsync(std::vector<Tensor> inputs, Tensor output,
                          ReduceOp op = ReduceOp::kSum);
  Work ReduceScatterAsync(Tensor input, Tensor output,
                          ReduceOp op = ReduceOp::kSum);

  // Writes `inputs[i]` of rank j to `outputs[j]` of rank i. Sizes may differ
  // for each pair of ranks.
  absl::Status AllToAll(std::vector<Tensor> inputs,
                        std::vector<Tensor> outputs);
  Work AllToAllAsync(std::vector<Tensor> inputs, std::vector<Tensor> outputs);
  // The same for parts of dimension 0 of two contiguous tensors, with these
  // sizes; without, for equal parts.
  absl::Status AllToAll(const Tensor& input, const Tensor& output,
                        const std::vector<int64_t>& input_splits = {},
                        const std::vector<int64_t>& output_splits = {});

  // Runs `operations`, which calls blocking collectives of this group, in the
  // background, as one operation: none of another call comes between them.
  Work RunInOrder(absl::AnyInvocable<absl::Status()> operations);

  // Messages between two ranks with one tag arrive in their order. Not part of
  // the order of the collectives. A send and a receive of other tensors in one
  // rank do not wait for each other if they are asynchronous. kInvalidArgument:
  // the tag is larger than the backend has room for (2^30 - 1 at least).
  //
  //   const Work sent = group.SendAsync(mine, right);
  //   RETURN_IF_ERROR(group.Receive(theirs, left));
  //   RETURN_IF_ERROR(sent.Wait());
  //
  // Messages from one rank with one tag arrive in the order of their sends, and
  // go to the receives in the order in which those began.
  absl::Status Send(const Tensor& tensor, int to, uint32_t tag = 0);
  Work SendAsync(const Tensor& tensor, int to, uint32_t tag = 0);
  absl::Status Receive(Tensor tensor, int from, uint32_t tag = 0);
  Work ReceiveAsync(Tensor tensor, int from, uint32_t tag = 0);
  // Receives from the first rank that has sent; returns its number.
  absl::StatusOr<int> ReceiveAny(Tensor tensor, uint32_t tag = 0);
  async::Future<int> ReceiveAnyAsync(Tensor tensor, uint32_t tag = 0);

  // Starts all these messages, in their order, and ends once all have ended:
  // torch.distributed's batch_isend_irecv. Ranks may list their operations in
  // any order, and the other rank of a message need not batch it. The error is
  // that of the operation that ended with one first, and names it with its
  // rank. kInvalidArgument for a wrong argument names the index of its
  // operation; nothing was sent then. An empty list is OK.
  //
  //   RETURN_IF_ERROR(group.BatchSendReceive({P2pOp::Send(mine, right),
  //                                           P2pOp::Receive(theirs, left)}));
  absl::Status BatchSendReceive(std::vector<P2pOp> operations);
  Work BatchSendReceiveAsync(std::vector<P2pOp> operations);

  // Ends all operations on all ranks: with `status` here, with kAborted on the
  // others.
  void Abort(const absl::Status& status);

  // Number of collectives that were called.
  int64_t sequence() const;

 private:
  absl::Status Run(const CollectiveCall& call);
  Work Start(CollectiveCall call);
  // Waits for the turn, and runs `operation` unless the group has failed.
  absl::Status RunInTurn(int64_t turn,
                         absl::FunctionRef<absl::Status()> operation);
  // Posts an operation to the background, in the order of the turns.
  Work Post(absl::AnyInvocable<absl::Status(int64_t turn)> operation);
  absl::Status RunOnBackend(const CollectiveCall& call, int64_t turn);
  absl::Status CompareCalls(const CollectiveCall& call, int64_t turn,
                            async::MonotonicTime deadline);
  // Names the operation in its error, and keeps it as the failure of the group.
  absl::Status NoteFailure(const std::string& operation,
                           const absl::Status& status);
  absl::Status CheckUsable() const;
  // The parts of dimension 0 with these numbers of rows; equal ones if there
  // are none.
  absl::StatusOr<std::vector<Tensor>> SplitRows(const Tensor& tensor,
                                                std::vector<int64_t> rows,
                                                const char* what) const;
  absl::Status CheckMessage(const char* operation, const Tensor& tensor,
                            uint32_t tag) const;
  absl::Status CheckPeer(const char* operation, int peer) const;
  // The contiguous memory of a message whose arguments are right.
  absl::StatusOr<Tensor> PrepareSend(const Tensor& tensor, int to,
                                     uint32_t tag) const;
  absl::StatusOr<Tensor> PrepareReceive(const Tensor& tensor,
                                        uint32_t tag) const;
  absl::StatusOr<Tensor> PrepareReceiveFrom(const Tensor& tensor, int from,
                                            uint32_t tag) const;
  Work StartSend(Tensor data, int to, uint32_t tag);
  // Writes the message in `data` to `tensor`; both may be the same.
  async::Future<int> StartReceive(Tensor tensor, Tensor data, int from,
                                  uint32_t tag);
  Work StartReceiveFrom(Tensor tensor, Tensor data, int from, uint32_t tag);
  async::MonotonicTime Deadline() const;

  const int rank_;
  const int size_;
  const ProcessGroupOptions options_;

  mutable async::Mutex mutex_;
  async::CondVar turn_ended_;
  // Collectives that were called, and that have ended.
  int64_t entered_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t ended_ ABSL_GUARDED_BY(mutex_) = 0;
  // Threads that wait for the end of a turn.
  int num_waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  // Why the group is unusable.
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  // Destroyed before what its futures use.
  const std::unique_ptr<Backend> backend_;
  // Runs what runs in the background: one thread, from the first call on.
  async::ThreadPool background_;
};

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_PROCESS_GROUP_H_

#include "collectives/process_group.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "async/status_macros.h"
#include "tensor/device.h"

namespace hawser::collectives {
namespace {

// For operations of the background when the group is destroyed.
constexpr absl::Duration kDestroyPatience = absl::Seconds(1);

// Longest description of a call that ranks compare.
constexpr size_t kDescriptionBytes = 240;

// The group whose RunInOrder runs in this thread, and its turn.
struct Turn {
  const ProcessGroup* group = nullptr;
  int64_t turn = 0;
};
thread_local Turn turn_of_thread;

}  // namespace

ProcessGroup::ProcessGroup(std::unique_ptr<Backend> backend, int rank, int size,
                           ProcessGroupOptions options)
    : rank_(rank),
      size_(size),
      options_(std::move(options)),
      backend_(std::move(backend)),
      background_({.num_threads = 1, .max_threads = 1, .name = "collectives"}) {
}

ProcessGroup::~ProcessGroup() {
  const async::MonotonicTime deadline =
      async::AddDelay(std::chrono::steady_clock::now(), kDestroyPatience);
  bool ended = true;
  {
    const async::MutexLock lock(&mutex_);
    ++num_waiting_;
    while (ended_ < entered_ && ended) {
      ended = turn_ended_.WaitUntil(&mutex_, deadline);
    }
    --num_waiting_;
  }
  if (!ended) {
    backend_->Abort(absl::AbortedError("the process group was destroyed"));
  }
  background_.Shutdown();
}

int64_t ProcessGroup::sequence() const {
  const async::MutexLock lock(&mutex_);
  return entered_;
}

async::MonotonicTime ProcessGroup::Deadline() const {
  return async::AddDelay(std::chrono::steady_clock::now(), options_.timeout);
}

void ProcessGroup::Abort(const absl::Status& status) {
  (void)NoteFailure("abort", status);
  backend_->Abort(status);
}

absl::Status ProcessGroup::CheckUsable() const {
  const async::MutexLock lock(&mutex_);
  if (failure_.ok()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "process group \"", options_.name,
      "\" cannot be used any more; make a new one of the ranks that are left: ",
      std::string(failure_.message())));
}

absl::Status ProcessGroup::NoteFailure(const std::string& operation,
                                       const absl::Status& status) {
  if (status.ok()) return status;
  absl::Status named(status.code(),
                     absl::StrCat(operation, " of process group \"",
                                  options_.name, "\", rank ", rank_, " of ",
                                  size_, ": ", std::string(status.message())));
  if (absl::IsInvalidArgument(status) || absl::IsUnimplemented(status)) {
    return named;
  }
  const async::MutexLock lock(&mutex_);
  if (failure_.ok()) failure_ = named;
  return named;
}

absl::Status ProcessGroup::Run(const CollectiveCall& call) {
  RETURN_IF_ERROR(CheckCall(call, rank_, size_, *backend_));
  if (turn_of_thread.group == this) {
    RETURN_IF_ERROR(CheckUsable());
    return RunOnBackend(call, turn_of_thread.turn);
  }
  int64_t turn = 0;
  {
    const async::MutexLock lock(&mutex_);
    turn = ++entered_;
  }
  return RunInTurn(turn, [&] { return RunOnBackend(call, turn); });
}

Work ProcessGroup::Start(CollectiveCall call) {
  if (absl::Status status = CheckCall(call, rank_, size_, *backend_);
      !status.ok()) {
    return async::MakeReadyFuture<void>(std::move(status));
  }
  MarkOperands(call, *backend_);
  return Post([this, call = std::move(call)](int64_t turn) {
    return RunOnBackend(call, turn);
  });
}

Work ProcessGroup::RunInOrder(absl::AnyInvocable<absl::Status()> operations) {
  return Post([this, operations = std::move(operations)](int64_t turn) mutable {
    const Turn outer = std::exchange(turn_of_thread, {this, turn});
    absl::Status status = operations();
    turn_of_thread = outer;
    return status;
  });
}

Work ProcessGroup::Post(
    absl::AnyInvocable<absl::Status(int64_t turn)> operation) {
  async::Promise<void> promise;
  Work work = promise.future();
  const async::MutexLock lock(&mutex_);
  background_.Post([this, operation = std::move(operation), turn = ++entered_,
                    promise = std::move(promise)]() mutable {
    promise.Set(RunInTurn(turn, [&] { return operation(turn); }));
  });
  return work;
}

absl::Status ProcessGroup::RunInTurn(
    int64_t turn, absl::FunctionRef<absl::Status()> operation) {
  {
    const async::MutexLock lock(&mutex_);
    ++num_waiting_;
    while (ended_ != turn - 1) turn_ended_.Wait(&mutex_);
    --num_waiting_;
  }
  absl::Status status = CheckUsable();
  if (status.ok()) status = operation();
  const async::MutexLock lock(&mutex_);
  ended_ = turn;
  if (num_waiting_ > 0) turn_ended_.NotifyAll();
  return status;
}

absl::Status ProcessGroup::RunOnBackend(const CollectiveCall& call,
                                        int64_t turn) {
  const async::MonotonicTime deadline = Deadline();
  absl::Status status;
  if (options_.check_calls) status = CompareCalls(call, turn, deadline);
  if (status.ok()) status = RunCall(call, rank_, size_, *backend_, deadline);
  if (status.ok()) [[likely]]
    return status;
  return NoteFailure(
      absl::StrCat(std::string(CollectiveName(call.kind)), " ", turn), status);
}

absl::Status ProcessGroup::CompareCalls(const CollectiveCall& call,
                                        int64_t turn,
                                        async::MonotonicTime deadline) {
  std::string description = absl::StrCat(turn, ": ", DescribeCall(call));
  description.resize(kDescriptionBytes);
  std::string all(kDescriptionBytes * static_cast<size_t>(size_), '\0');
  std::vector<MutableBytes> outputs;
  outputs.reserve(static_cast<size_t>(size_));
  for (int rank = 0; rank < size_; ++rank) {
    outputs.push_back(std::as_writable_bytes(std::span(all).subspan(
        static_cast<size_t>(rank) * kDescriptionBytes, kDescriptionBytes)));
  }
  RETURN_IF_ERROR(backend_->ForDevice(tensor::kCpu)
                      ->AllGather(std::as_bytes(std::span(description)),
                                  outputs, deadline));
  std::map<std::string, std::vector<int>> ranks;
  for (int rank = 0; rank < size_; ++rank) {
    const char* const text =
        all.data() + static_cast<size_t>(rank) * kDescriptionBytes;
    ranks[std::string(text, strnlen(text, kDescriptionBytes))].push_back(rank);
  }
  if (ranks.size() == 1) return absl::OkStatus();
  std::vector<std::string> calls;
  calls.reserve(ranks.size());
  for (const auto& [text, callers] : ranks) {
    calls.push_back(absl::StrCat(callers.size() == 1 ? "rank " : "ranks ",
                                 absl::StrJoin(callers, ", "), " in ", text));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the ranks call different operations: ", absl::StrJoin(calls, "; ")));
}

absl::Status ProcessGroup::Barrier() {
  return Run({.kind = CollectiveKind::kBarrier});
}
Work ProcessGroup::BarrierAsync() {
  return Start({.kind = CollectiveKind::kBarrier});
}

absl::Status ProcessGroup::Broadcast(Tensor tensor, int root) {
  return Run({.kind = CollectiveKind::kBroadcast,
              .outputs = {std::move(tensor)},
              .root = root});
}
Work ProcessGroup::BroadcastAsync(Tensor tensor, int root) {
  return Start({.kind = CollectiveKind::kBroadcast,
                .outputs = {std::move(tensor)},
                .root = root});
}

absl::Status ProcessGroup::AllReduce(Tensor tensor, ReduceOp op) {
  return AllReduce(std::vector<Tensor>{std::move(tensor)}, op);
}
absl::Status ProcessGroup::AllReduce(std::vector<Tensor> tensors, ReduceOp op) {
  return Run({.kind = CollectiveKind::kAllReduce,
              .outputs = std::move(tensors),
              .op = op});
}
Work ProcessGroup::AllReduceAsync(Tensor tensor, ReduceOp op) {
  return AllReduceAsync(std::vector<Tensor>{std::move(tensor)}, op);
}
Work ProcessGroup::AllReduceAsync(std::vector<Tensor> tensors, ReduceOp op) {
  return Start({.kind = CollectiveKind::kAllReduce,
                .outputs = std::move(tensors),
                .op = op});
}

absl::Status ProcessGroup::Reduce(Tensor tensor, int root, ReduceOp op) {
  return Run({.kind = CollectiveKind::kReduce,
              .outputs = {std::move(tensor)},
              .op = op,
              .root = root});
}
Work ProcessGroup::ReduceAsync(Tensor tensor, int root, ReduceOp op) {
  return Start({.kind = CollectiveKind::kReduce,
                .outputs = {std::move(tensor)},
                .op = op,
                .root = root});
}

absl::Status ProcessGroup::AllGather(Tensor input,
                                     std::vector<Tensor> outputs) {
  return Run({.kind = CollectiveKind::kAllGather,
              .inputs = {std::move(input)},
              .outputs = std::move(outputs)});
}
absl::Status ProcessGroup::AllGather(Tensor input, Tensor output) {
  return AllGather(std::move(input), std::vector<Tensor>{std::move(output)});
}
Work ProcessGroup::AllGatherAsync(Tensor input, std::vector<Tensor> outputs) {
  return Start({.kind = CollectiveKind::kAllGather,
                .inputs = {std::move(input)},
                .outputs = std::move(outputs)});
}
Work ProcessGroup::AllGatherAsync(Tensor input, Tensor output) {
  return AllGatherAsync(std::move(input),
                        std::vector<Tensor>{std::move(output)});
}

absl::Status ProcessGroup::Gather(Tensor input, std::vector<Tensor> outputs,
                                  int root) {
  return Run({.kind = CollectiveKind::kGather,
              .inputs = {std::move(input)},
              .outputs = std::move(outputs),
              .root = root});
}
Work ProcessGroup::GatherAsync(Tensor input, std::vector<Tensor> outputs,
                               int root) {
  return Start({.kind = CollectiveKind::kGather,
                .inputs = {std::move(input)},
                .outputs = std::move(outputs),
                .root = root});
}

absl::Status ProcessGroup::Scatter(std::vector<Tensor> inputs, Tensor output,
                                   int root) {
  return Run({.kind = CollectiveKind::kScatter,
              .inputs = std::move(inputs),
              .outputs = {std::move(output)},
              .root = root});
}
Work ProcessGroup::ScatterAsync(std::vector<Tensor> inputs, Tensor output,
                                int root) {
  return Start({.kind = CollectiveKind::kScatter,
                .inputs = std::move(inputs),
                .outputs = {std::move(output)},
                .root = root});
}

absl::Status ProcessGroup::ReduceScatter(std::vector<Tensor> inputs,
                                         Tensor output, ReduceOp op) {
  return Run({.kind = CollectiveKind::kReduceScatter,
              .inputs = std::move(inputs),
              .outputs = {std::move(output)},
              .op = op});
}
absl::Status ProcessGroup::ReduceScatter(Tensor input, Tensor output,
                                         ReduceOp op) {
  return ReduceScatter(std::vector<Tensor>{std::move(input)}, std::move(output),
                       op);
}
Work ProcessGroup::ReduceScatterAsync(std::vector<Tensor> inputs, Tensor output,
                                      ReduceOp op) {
  return Start({.kind = CollectiveKind::kReduceScatter,
                .inputs = std::move(inputs),
                .outputs = {std::move(output)},
                .op = op});
}
Work ProcessGroup::ReduceScatterAsync(Tensor input, Tensor output,
                                      ReduceOp op) {
  return ReduceScatterAsync(std::vector<Tensor>{std::move(input)},
                            std::move(output), op);
}

absl::Status ProcessGroup::AllToAll(std::vector<Tensor> inputs,
                                    std::vector<Tensor> outputs) {
  return Run({.kind = CollectiveKind::kAllToAll,
              .inputs = std::move(inputs),
              .outputs = std::move(outputs)});
}
Work ProcessGroup::AllToAllAsync(std::vector<Tensor> inputs,
                                 std::vector<Tensor> outputs) {
  return Start({.kind = CollectiveKind::kAllToAll,
                .inputs = std::move(inputs),
                .outputs = std::move(outputs)});
}
absl::Status ProcessGroup::AllToAll(const Tensor& input, const Tensor& output,
                                    const std::vector<int64_t>& input_splits,
                                    const std::vector<int64_t>& output_splits) {
  ASSIGN_OR_RETURN(std::vector<Tensor> inputs,
                   SplitRows(input, input_splits, "input"));
  ASSIGN_OR_RETURN(std::vector<Tensor> outputs,
                   SplitRows(output, output_splits, "output"));
  return AllToAll(std::move(inputs), std::move(outputs));
}

absl::StatusOr<std::vector<Tensor>> ProcessGroup::SplitRows(
    const Tensor& tensor, std::vector<int64_t> rows, const char* what) const {
  const auto invalid = [&](const std::string& reason) {
    return absl::InvalidArgumentError(
        absl::StrCat("all-to-all: the ", what, " ", reason));
  };
  if (!tensor.defined() || tensor.rank() == 0) {
    return invalid("has no dimension that could be split");
  }
  if (rows.empty()) {
    if (tensor.dim(0) % size_ != 0) {
      return invalid(absl::StrCat("has ", tensor.dim(0),
                                  " rows, which do not split into ", size_,
                                  " equal parts"));
    }
    rows.assign(static_cast<size_t>(size_), tensor.dim(0) / size_);
  }
  int64_t sum = 0;
  for (const int64_t count : rows) {
    if (count < 0 || count > tensor.dim(0) - sum) {
      sum = -1;
      break;
    }
    sum += count;
  }
  if (rows.size() != static_cast<size_t>(size_) || sum != tensor.dim(0)) {
    return invalid(absl::StrCat("has ", tensor.dim(0), " rows and ",
                                rows.size(), " splits, which must be ", size_,
                                " numbers of rows that add up"));
  }
  std::vector<Tensor> parts;
  int64_t begin = 0;
  for (const int64_t count : rows) {
    ASSIGN_OR_RETURN(Tensor part, tensor.Narrow(0, begin, count));
    parts.push_back(std::move(part));
    begin += count;
  }
  return parts;
}

}  // namespace hawser::collectives

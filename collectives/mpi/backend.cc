#include "collectives/mpi/backend.h"

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "collectives/all_to_all_sizes.h"
#include "collectives/group_watch.h"
#include "collectives/mpi/mpi_thread.h"
#include "collectives/mpi/operations.h"
#include "collectives/mpi/reduction.h"
#include "collectives/reduce_op.h"
#include "tensor/dtype.h"

namespace hawser::collectives {
namespace {

// Of all parts together that a segment copies. A multiple of all elements.
constexpr size_t kSegmentBytes = size_t{4} << 20;
constexpr size_t kMinSegmentBytes = size_t{16} << 10;

// Memory of a segment, which MPI uses until the operation has ended.
struct Staging {
  std::unique_ptr<std::byte[]> input;
  std::unique_ptr<std::byte[]> output;
  size_t bytes = 0;
  // Of an all-to-all.
  std::vector<int> sent = {};
  std::vector<int> received = {};
  std::vector<int> places = {};
};

template <class Bytes>
Bytes Slice(Bytes bytes, size_t begin, size_t length) {
  const size_t from = std::min(begin, bytes.size());
  return bytes.subspan(from, std::min(length, bytes.size() - from));
}

void Copy(std::byte* to, ConstBytes from) {
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}

class MpiBackend final : public Backend {
 public:
  MpiBackend(MpiThread& thread, MPI_Comm collectives, MPI_Comm messages,
             int rank, int size)
      : rank_(rank),
        size_(size),

        operations_(std::make_shared<MpiOperations>(thread, collectives,
                                                    messages, rank, size)) {
    operations_->Open();
    watch_ = std::make_unique<GroupWatch>(
        *this, rank, size,
        GroupWatch::Events{
            // The operations have ended all.
            .on_failure = [](const absl::Status&) {},
            .on_left =
                [this](int other, int64_t num_begun) {
                  operations_->EndAfter(
                      num_begun, absl::UnavailableError(absl::StrCat(
                                     "rank ", other, " has left the group")));
                },
            .num_begun = [this] { return num_begun_.load(); }});
  }
  ~MpiBackend() override {
    watch_ = nullptr;
    operations_->Close();
  }

  std::string_view name() const override { return "mpi"; }
  uint32_t max_tag() const override { return MpiOperations::kMaxTag; }

  absl::Status Barrier(async::MonotonicTime deadline) override {
    ++num_begun_;
    return RunOne(
        [this](Staging&, MPI_Request* request) {
          return MpiStatus(MPI_Ibarrier(communicator(), request),
                           "MPI_Ibarrier");
        },
        deadline);
  }

  absl::Status Broadcast(MutableBytes data, int root,
                         async::MonotonicTime deadline) override {
    return ForSegments(
        data.size(), 1, [&](size_t begin, size_t bytes) -> absl::Status {
          if (rank_ == root) Copy(output(), data.subspan(begin, bytes));
          RETURN_IF_ERROR(RunOne(
              [=, this](Staging& staging, MPI_Request* request) {
                return MpiStatus(
                    MPI_Ibcast(staging.output.get(), Int(bytes), MPI_BYTE, root,
                               communicator(), request),
                    "MPI_Ibcast");
              },
              deadline));
          if (rank_ != root) Copy(data.data() + begin, {output(), bytes});
          return absl::OkStatus();
        });
  }

  absl::Status AllReduce(std::span<const MutableBytes> pieces,
                         const Reduction& reduction,
                         async::MonotonicTime deadline) override {
    size_t total = 0;
    for (const MutableBytes piece : pieces) total += piece.size();
    return ForSegments(total, 1, [&](size_t begin, size_t bytes) {
      ForPieces(pieces, begin, bytes, [&](MutableBytes part, size_t place) {
        Copy(output() + place, part);
      });
      RETURN_IF_ERROR(RunOne(
          [=, this](Staging& staging, MPI_Request* request) -> absl::Status {
            ASSIGN_OR_RETURN(const MpiReduction mpi,
                             MpiReduction::Get(reduction));
            return MpiStatus(
                MPI_Iallreduce(MPI_IN_PLACE, staging.output.get(),
                               CountOf(bytes, reduction), mpi.type(), mpi.op(),
                               communicator(), request),
                "MPI_Iallreduce");
          },
          deadline));
      FinishAverage(reduction, size_, output(), bytes);
      ForPieces(pieces, begin, bytes, [&](MutableBytes part, size_t place) {
        Copy(part.data(), {output() + place, part.size()});
      });
      return absl::OkStatus();
    });
  }

  absl::Status Reduce(ConstBytes input, MutableBytes output_bytes,
                      const Reduction& reduction, int root,
                      async::MonotonicTime deadline) override {
    return ForSegments(
        input.size(), 1, [&](size_t begin, size_t bytes) -> absl::Status {
          Copy(this->input(), input.subspan(begin, bytes));
          RETURN_IF_ERROR(RunOne(
              [=, this](Staging& staging,
                        MPI_Request* request) -> absl::Status {
                ASSIGN_OR_RETURN(const MpiReduction mpi,
                                 MpiReduction::Get(reduction));
                return MpiStatus(
                    MPI_Ireduce(staging.input.get(), staging.output.get(),
                                CountOf(bytes, reduction), mpi.type(), mpi.op(),
                                root, communicator(), request),
                    "MPI_Ireduce");
              },
              deadline));
          if (rank_ != root) return absl::OkStatus();
          FinishAverage(reduction, size_, output(), bytes);
          Copy(output_bytes.data() + begin, {output(), bytes});
          return absl::OkStatus();
        });
  }

  absl::Status AllGather(ConstBytes input,
                         std::span<const MutableBytes> outputs,
                         async::MonotonicTime deadline) override {
    return ForSegments(
        input.size(), outputs.size(),
        [&](size_t begin, size_t bytes) -> absl::Status {
          Copy(this->input(), input.subspan(begin, bytes));
          RETURN_IF_ERROR(RunOne(
              [=, this](Staging& staging, MPI_Request* request) {
                return MpiStatus(
                    MPI_Iallgather(staging.input.get(), Int(bytes), MPI_BYTE,
                                   staging.output.get(), Int(bytes), MPI_BYTE,
                                   communicator(), request),
                    "MPI_Iallgather");
              },
              deadline));
          CopyOut(outputs, begin, bytes);
          return absl::OkStatus();
        });
  }

  absl::Status Gather(ConstBytes input, std::span<const MutableBytes> outputs,
                      int root, async::MonotonicTime deadline) override {
    return ForSegments(
        input.size(), Index(size_),
        [&](size_t begin, size_t bytes) -> absl::Status {
          Copy(this->input(), input.subspan(begin, bytes));
          RETURN_IF_ERROR(RunOne(
              [=, this](Staging& staging, MPI_Request* request) {
                return MpiStatus(
                    MPI_Igather(staging.input.get(), Int(bytes), MPI_BYTE,
                                staging.output.get(), Int(bytes), MPI_BYTE,
                                root, communicator(), request),
                    "MPI_Igather");
              },
              deadline));
          CopyOut(outputs, begin, bytes);
          return absl::OkStatus();
        });
  }

  absl::Status Scatter(std::span<const ConstBytes> inputs,
                       MutableBytes output_bytes, int root,
                       async::MonotonicTime deadline) override {
    return ForSegments(
        output_bytes.size(), Index(size_),
        [&](size_t begin, size_t bytes) -> absl::Status {
          CopyIn(inputs, begin, bytes);
          RETURN_IF_ERROR(RunOne(
              [=, this](Staging& staging, MPI_Request* request) {
                return MpiStatus(
                    MPI_Iscatter(staging.input.get(), Int(bytes), MPI_BYTE,
                                 staging.output.get(), Int(bytes), MPI_BYTE,
                                 root, communicator(), request),
                    "MPI_Iscatter");
              },
              deadline));
          Copy(output_bytes.data() + begin, {output(), bytes});
          return absl::OkStatus();
        });
  }

  absl::Status ReduceScatter(std::span<const ConstBytes> inputs,
                             MutableBytes output_bytes,
                             const Reduction& reduction,
                             async::MonotonicTime deadline) override {
    return ForSegments(
        output_bytes.size(), inputs.size(),
        [&](size_t begin, size_t bytes) -> absl::Status {
          CopyIn(inputs, begin, bytes);
          RETURN_IF_ERROR(RunOne(
              [=, this](Staging& staging,
                        MPI_Request* request) -> absl::Status {
                ASSIGN_OR_RETURN(const MpiReduction mpi,
                                 MpiReduction::Get(reduction));
                return MpiStatus(MPI_Ireduce_scatter_block(
                                     staging.input.get(), staging.output.get(),
                                     CountOf(bytes, reduction), mpi.type(),
                                     mpi.op(), communicator(), request),
                                 "MPI_Ireduce_scatter_block");
              },
              deadline));
          FinishAverage(reduction, size_, output(), bytes);
          Copy(output_bytes.data() + begin, {output(), bytes});
          return absl::OkStatus();
        });
  }

  absl::Status AllToAll(std::span<const ConstBytes> inputs,
                        std::span<const MutableBytes> outputs,
                        async::MonotonicTime deadline) override {
    // All ranks need the same number of segments.
    ASSIGN_OR_RETURN(const uint64_t longest,
                     CompareSizes(*this, inputs, outputs, deadline));
    return ForSegments(
        longest, inputs.size(),
        [&](size_t begin, size_t bytes) -> absl::Status {
          staging_->sent.clear();
          staging_->received.clear();
          staging_->places.clear();
          for (size_t i = 0; i < inputs.size(); ++i) {
            const ConstBytes sent = Slice(inputs[i], begin, bytes);
            Copy(input() + i * bytes, sent);
            staging_->sent.push_back(Int(sent.size()));
            staging_->received.push_back(
                Int(Slice(outputs[i], begin, bytes).size()));
            staging_->places.push_back(Int(i * bytes));
          }
          RETURN_IF_ERROR(RunOne(
              [this](Staging& staging, MPI_Request* request) {
                return MpiStatus(
                    MPI_Ialltoallv(
                        staging.input.get(), staging.sent.data(),
                        staging.places.data(), MPI_BYTE, staging.output.get(),
                        staging.received.data(), staging.places.data(),
                        MPI_BYTE, communicator(), request),
                    "MPI_Ialltoallv");
              },
              deadline));
          CopyOut(outputs, begin, bytes);
          return absl::OkStatus();
        });
  }

  async::Future<void> Send(ConstBytes data, int to, uint32_t tag,
                           async::MonotonicTime deadline) override {
    return operations_->Send(data, to, tag, deadline);
  }
  async::Future<int> Receive(MutableBytes data, int from, uint32_t tag,
                             async::MonotonicTime deadline) override {
    return operations_->Receive(data, from, tag, deadline);
  }

  void Abort(const absl::Status& status) override {
    operations_->Abort(status);
  }

 private:
  static size_t Index(int rank) { return static_cast<size_t>(rank); }
  static int Int(size_t bytes) { return static_cast<int>(bytes); }
  static int CountOf(size_t bytes, const Reduction& reduction) {
    return Int(bytes / static_cast<size_t>(tensor::ItemBytes(reduction.dtype)));
  }

  MPI_Comm communicator() const { return operations_->collectives(); }
  std::byte* input() { return staging_->input.get(); }
  std::byte* output() { return staging_->output.get(); }

  // Calls `run` for segments of `num_parts` parts of `part_bytes` bytes, with
  // memory for all parts of a segment.
  absl::Status ForSegments(
      size_t part_bytes, size_t num_parts,
      absl::FunctionRef<absl::Status(size_t begin, size_t bytes)> run) {
    ++num_begun_;
    const size_t segment =
        std::max(kMinSegmentBytes, kSegmentBytes / num_parts / 64 * 64);
    MakeStaging(std::min(segment, part_bytes) * num_parts);
    for (size_t begin = 0; begin < part_bytes; begin += segment) {
      RETURN_IF_ERROR(run(begin, std::min(segment, part_bytes - begin)));
    }
    return absl::OkStatus();
  }
  void MakeStaging(size_t bytes) {
    if (staging_ != nullptr && staging_->bytes >= bytes) return;
    staging_ = std::make_shared<Staging>();
    staging_->bytes = bytes;
    staging_->input = std::make_unique_for_overwrite<std::byte[]>(bytes);
    staging_->output = std::make_unique_for_overwrite<std::byte[]>(bytes);
  }

  // Calls `copy` with the parts of `pieces` that lie in a segment of their
  // concatenation, and their places in the segment.
  static void ForPieces(std::span<const MutableBytes> pieces, size_t begin,
                        size_t bytes,
                        absl::FunctionRef<void(MutableBytes, size_t)> copy) {
    size_t start = 0;
    for (const MutableBytes piece : pieces) {
      const size_t from = std::max(begin, start);
      const size_t to = std::min(begin + bytes, start + piece.size());
      if (from < to) copy(piece.subspan(from - start, to - from), from - begin);
      start += piece.size();
    }
  }
  void CopyIn(std::span<const ConstBytes> parts, size_t begin, size_t bytes) {
    for (size_t i = 0; i < parts.size(); ++i) {
      Copy(input() + i * bytes, parts[i].subspan(begin, bytes));
    }
  }
  void CopyOut(std::span<const MutableBytes> parts, size_t begin,
               size_t bytes) {
    for (size_t i = 0; i < parts.size(); ++i) {
      const MutableBytes part = Slice(parts[i], begin, bytes);
      Copy(part.data(), {output() + i * bytes, part.size()});
    }
  }

  // Runs one operation of MPI, which `start` begins.
  absl::Status RunOne(
      absl::AnyInvocable<absl::Status(Staging&, MPI_Request*)> start,
      async::MonotonicTime deadline) {
    MakeStaging(0);
    absl::Status status =
        operations_
            ->Run(
                num_begun_.load(),
                [start = std::move(start),
                 staging = staging_]() mutable -> absl::StatusOr<MPI_Request> {
                  MPI_Request request = MPI_REQUEST_NULL;
                  RETURN_IF_ERROR(start(*staging, &request));
                  return request;
                },
                staging_, deadline)
            .Wait();
    if (status.ok()) return status;
    status = Explain(std::move(status));
    Abort(status);
    // MPI may still use it.
    staging_ = nullptr;
    return status;
  }

  // The error of an operation, with the ranks at fault.
  absl::Status Explain(absl::Status status) {
    if (!absl::IsDeadlineExceeded(status)) return status;
    return watch_->ExplainTimeout(num_begun_.load(), status);
  }

  const int rank_;
  const int size_;
  const std::shared_ptr<MpiOperations> operations_;
  std::unique_ptr<GroupWatch> watch_;
  std::atomic<int64_t> num_begun_ = 0;
  // Of the thread that calls a collective.
  std::shared_ptr<Staging> staging_;
};

// The ranks of the group in MPI_COMM_WORLD.
absl::StatusOr<std::vector<int>> FindProcesses(store::Store& store,
                                               const MpiThread& thread,
                                               int rank, int size,
                                               absl::Duration timeout) {
  const auto key = [](int of) { return absl::StrCat("rank/", of); };
  const async::MonotonicTime deadline =
      async::AddDelay(std::chrono::steady_clock::now(), timeout);
  RETURN_IF_ERROR(store.Set(key(rank), absl::StrCat(thread.rank()), timeout));
  std::vector<int> processes;
  std::vector<int> missing;
  for (int other = 0; other < size; ++other) {
    const absl::Duration left =
        async::TimeBetween(std::chrono::steady_clock::now(), deadline);
    const absl::StatusOr<std::string> text =
        store.Get(key(other), std::max(left, absl::ZeroDuration()));
    if (absl::IsDeadlineExceeded(text.status())) {
      missing.push_back(other);
      continue;
    }
    RETURN_IF_ERROR(text.status());
    int process = 0;
    if (!absl::SimpleAtoi(*text, &process) || process < 0 ||
        process >= thread.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", other, " is not a process of this MPI job of ",
                       thread.size()));
    }
    processes.push_back(process);
  }
  if (!missing.empty()) {
    return absl::DeadlineExceededError(absl::StrCat(
        missing.size() == 1 ? "rank " : "ranks ", absl::StrJoin(missing, ", "),
        missing.size() == 1 ? " has" : " have", " not joined"));
  }
  if (std::set<int>(processes.begin(), processes.end()).size() !=
      processes.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "two ranks are the same process; the ranks of the group are the "
        "processes ",
        absl::StrJoin(processes, ", "), " of MPI_COMM_WORLD"));
  }
  return processes;
}

// In the thread.
absl::StatusOr<MPI_Comm> MakeCommunicator(const std::vector<int>& processes,
                                          int tag) {
  MPI_Group world = MPI_GROUP_NULL;
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Comm communicator = MPI_COMM_NULL;
  RETURN_IF_ERROR(
      MpiStatus(MPI_Comm_group(MPI_COMM_WORLD, &world), "MPI_Comm_group"));
  absl::Status status =
      MpiStatus(MPI_Group_incl(world, static_cast<int>(processes.size()),
                               processes.data(), &group),
                "MPI_Group_incl");
  if (status.ok()) {
    status = MpiStatus(
        MPI_Comm_create_group(MPI_COMM_WORLD, group, tag, &communicator),
        "MPI_Comm_create_group");
    MPI_Group_free(&group);
  }
  MPI_Group_free(&world);
  RETURN_IF_ERROR(status);
  RETURN_IF_ERROR(
      MpiStatus(MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN),
                "MPI_Comm_set_errhandler"));
  return communicator;
}

}  // namespace

absl::StatusOr<MpiProcess> GetMpiProcess() {
  ASSIGN_OR_RETURN(const MpiThread* const thread, MpiThread::Get());
  return MpiProcess{.rank = thread->rank(), .size = thread->size()};
}

absl::StatusOr<std::unique_ptr<Backend>> MakeMpiBackend(
    store::Store& store, int rank, int size, absl::Duration timeout) {
  ASSIGN_OR_RETURN(MpiThread* const thread, MpiThread::Get());
  if (rank < 0 || rank >= size || size > thread->size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "there is no rank ", rank, " of ", size, " in an MPI job of ",
        thread->size(), thread->size() == 1 ? ": start it with mpirun" : ""));
  }
  ASSIGN_OR_RETURN(const std::vector<int> processes,
                   FindProcesses(store, *thread, rank, size, timeout));
  MPI_Comm communicators[2];
  RETURN_IF_ERROR(thread->Run([&]() -> absl::Status {
    for (const int tag : {0, 1}) {
      ASSIGN_OR_RETURN(communicators[tag], MakeCommunicator(processes, tag));
    }
    return absl::OkStatus();
  }));
  return std::make_unique<MpiBackend>(*thread, communicators[0],
                                      communicators[1], rank, size);
}

}  // namespace hawser::collectives

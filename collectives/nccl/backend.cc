#include "collectives/nccl/backend.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "collectives/all_to_all_sizes.h"
#include "collectives/group_watch.h"
#include "collectives/nccl/communicator_thread.h"
#include "collectives/nccl/device_messages.h"
#include "collectives/nccl/reduction.h"
#include "collectives/reduce_op.h"
#include "tensor/device.h"
#include "tensor/dtype.h"

namespace hawser::collectives {
namespace {

// Whether the parts, which have one size, lie behind each other.
template <class Bytes>
bool AreAdjacent(std::span<const Bytes> parts) {
  for (size_t i = 1; i < parts.size(); ++i) {
    if (parts[i].data() != parts[i - 1].data() + parts[i - 1].size()) {
      return false;
    }
  }
  return true;
}

size_t CountOf(size_t bytes, const Reduction& reduction) {
  return bytes / static_cast<size_t>(tensor::ItemBytes(reduction.dtype));
}

class NcclBackend final : public Backend {
 public:
  NcclBackend(int rank, int size, std::unique_ptr<NcclLibrary> library,
              const NcclId& id, std::unique_ptr<Backend> control,
              const NcclConfig& config)
      : rank_(rank),
        size_(size),
        library_(std::move(library)),
        control_(std::move(control)),
        communicator_(*library_,
                      {.id = id, .rank = rank, .size = size, .config = config}),
        messages_(*control_, *library_, rank, config,
                  [this](const absl::Status& status) { Abort(status); }),
        watch_(*control_, rank, size,
               {.on_failure =
                    [this](const absl::Status& status) {
                      communicator_.Abort(status);
                      messages_.Abort(status);
                    },
                .on_left =
                    [this](int other, int64_t num_begun) {
                      communicator_.EndAfter(
                          num_begun,
                          absl::UnavailableError(absl::StrCat(
                              "rank ", other, " has left the group")));
                    },
                .num_begun = [this] { return num_begun_.load(); }}) {}

  std::string_view name() const override { return "nccl"; }
  Backend* ForDevice(tensor::Device device) override {
    if (device == library_->device()) return this;
    return device.is_cpu() ? control_.get() : nullptr;
  }
  uint32_t max_tag() const override { return DeviceMessages::kMaxTag; }
  std::shared_ptr<const Mark> MarkEnqueued() override {
    absl::StatusOr<std::shared_ptr<const Mark>> mark = library_->Mark();
    // The error of the device comes with the operation.
    return mark.ok() ? *std::move(mark) : nullptr;
  }
  void StartAfter(std::shared_ptr<const Mark> mark) override {
    start_after_ = std::move(mark);
  }

  // Connects the ranks.
  absl::Status Connect(async::MonotonicTime deadline) {
    return RunOnDevice(
        TakeMark(), [](NcclCommunicator&) { return absl::OkStatus(); },
        deadline);
  }

  absl::Status Barrier(async::MonotonicTime deadline) override {
    return control_->Barrier(deadline);
  }
  absl::Status Broadcast(MutableBytes data, int root,
                         async::MonotonicTime deadline) override {
    return Run(
        TakeMark(),
        [=](NcclCommunicator& nccl) {
          if (data.empty()) return absl::OkStatus();
          return nccl.Broadcast(data.data(), data.data(), data.size(), root);
        },
        deadline);
  }
  absl::Status AllReduce(std::span<const MutableBytes> pieces,
                         const Reduction& reduction,
                         async::MonotonicTime deadline) override {
    absl::StatusOr<MarkPointer> mark = TakeMark();
    RETURN_IF_ERROR(CheckNcclReduction(reduction));
    return Run(
        std::move(mark),
        [=](NcclCommunicator& nccl) {
          for (const MutableBytes piece : pieces) {
            if (piece.empty()) continue;
            RETURN_IF_ERROR(nccl.AllReduce(piece.data(), piece.data(),
                                           CountOf(piece.size(), reduction),
                                           reduction));
          }
          return absl::OkStatus();
        },
        deadline);
  }
  absl::Status Reduce(ConstBytes input, MutableBytes output,
                      const Reduction& reduction, int root,
                      async::MonotonicTime deadline) override {
    absl::StatusOr<MarkPointer> mark = TakeMark();
    RETURN_IF_ERROR(CheckNcclReduction(reduction));
    return Run(
        std::move(mark),
        [=](NcclCommunicator& nccl) {
          if (input.empty()) return absl::OkStatus();
          return nccl.Reduce(input.data(), output.data(),
                             CountOf(input.size(), reduction), reduction, root);
        },
        deadline);
  }
  absl::Status AllGather(ConstBytes input,
                         std::span<const MutableBytes> outputs,
                         async::MonotonicTime deadline) override {
    return Run(
        TakeMark(),
        [=](NcclCommunicator& nccl) {
          if (input.empty()) return absl::OkStatus();
          if (AreAdjacent(outputs)) {
            return nccl.AllGather(input.data(), outputs[0].data(),
                                  input.size());
          }
          for (size_t root = 0; root < outputs.size(); ++root) {
            RETURN_IF_ERROR(nccl.Broadcast(input.data(), outputs[root].data(),
                                           input.size(),
                                           static_cast<int>(root)));
          }
          return absl::OkStatus();
        },
        deadline);
  }
  absl::Status Gather(ConstBytes input, std::span<const MutableBytes> outputs,
                      int root, async::MonotonicTime deadline) override {
    return Run(
        TakeMark(),
        [=, this](NcclCommunicator& nccl) {
          if (rank_ != root) return SendTo(nccl, input, root);
          RETURN_IF_ERROR(CopyOwn(nccl, input, outputs[Index(root)]));
          return ReceiveFromOthers(nccl, outputs);
        },
        deadline);
  }
  absl::Status Scatter(std::span<const ConstBytes> inputs, MutableBytes output,
                       int root, async::MonotonicTime deadline) override {
    return Run(
        TakeMark(),
        [=, this](NcclCommunicator& nccl) {
          if (rank_ != root) return ReceiveFrom(nccl, output, root);
          RETURN_IF_ERROR(CopyOwn(nccl, inputs[Index(root)], output));
          return SendToOthers(nccl, inputs);
        },
        deadline);
  }
  absl::Status ReduceScatter(std::span<const ConstBytes> inputs,
                             MutableBytes output, const Reduction& reduction,
                             async::MonotonicTime deadline) override {
    absl::StatusOr<MarkPointer> mark = TakeMark();
    RETURN_IF_ERROR(CheckNcclReduction(reduction));
    return Run(
        std::move(mark),
        [=](NcclCommunicator& nccl) {
          if (output.empty()) return absl::OkStatus();
          const size_t count = CountOf(output.size(), reduction);
          if (AreAdjacent(inputs)) {
            return nccl.ReduceScatter(inputs[0].data(), output.data(), count,
                                      reduction);
          }
          for (size_t root = 0; root < inputs.size(); ++root) {
            RETURN_IF_ERROR(nccl.Reduce(inputs[root].data(), output.data(),
                                        count, reduction,
                                        static_cast<int>(root)));
          }
          return absl::OkStatus();
        },
        deadline);
  }
  absl::Status AllToAll(std::span<const ConstBytes> inputs,
                        std::span<const MutableBytes> outputs,
                        async::MonotonicTime deadline) override {
    absl::StatusOr<MarkPointer> mark = TakeMark();
    RETURN_IF_ERROR(
        CompareSizes(*control_, inputs, outputs, deadline).status());
    return Run(
        std::move(mark),
        [=, this](NcclCommunicator& nccl) {
          const size_t own = Index(rank_);
          RETURN_IF_ERROR(CopyOwn(nccl, inputs[own], outputs[own]));
          RETURN_IF_ERROR(SendToOthers(nccl, inputs));
          return ReceiveFromOthers(nccl, outputs);
        },
        deadline);
  }

  async::Future<void> Send(ConstBytes data, int to, uint32_t tag,
                           async::MonotonicTime deadline) override {
    return messages_.Send(data, to, tag, deadline);
  }
  async::Future<int> Receive(MutableBytes data, int from, uint32_t tag,
                             async::MonotonicTime deadline) override {
    return messages_.Receive(data, from, tag, deadline);
  }

  void Abort(const absl::Status& status) override {
    communicator_.Abort(status);
    messages_.Abort(status);
    control_->Abort(status);
  }

 private:
  using MarkPointer = std::shared_ptr<const Mark>;

  static size_t Index(int rank) { return static_cast<size_t>(rank); }

  // After what the next operation runs.
  absl::StatusOr<MarkPointer> TakeMark() {
    if (start_after_ != nullptr) return std::exchange(start_after_, nullptr);
    return library_->Mark();
  }

  absl::Status Run(absl::StatusOr<MarkPointer> mark,
                   CommunicatorThread::Enqueue enqueue,
                   async::MonotonicTime deadline) {
    absl::Status status =
        RunOnDevice(std::move(mark), std::move(enqueue), deadline);
    if (!absl::IsInvalidArgument(status)) return status;
    // Of a call of NCCL: unlike after other errors of this code, the
    // communicator is lost.
    return absl::InternalError(std::string(status.message()));
  }

  absl::Status RunOnDevice(absl::StatusOr<MarkPointer> mark,
                           CommunicatorThread::Enqueue enqueue,
                           async::MonotonicTime deadline) {
    ++num_begun_;
    absl::Status status = mark.status();
    if (status.ok()) {
      status = communicator_.Run(*std::move(mark), std::move(enqueue), deadline)
                   .Wait();
    }
    if (status.ok()) return status;
    status = Explain(std::move(status));
    Abort(status);
    return status;
  }

  // The error of an operation, with the ranks at fault.
  absl::Status Explain(absl::Status status) {
    if (!absl::IsDeadlineExceeded(status)) return status;
    return watch_.ExplainTimeout(num_begun_.load(), status);
  }

  static absl::Status SendTo(NcclCommunicator& nccl, ConstBytes data, int to) {
    if (data.empty()) return absl::OkStatus();
    return nccl.Send(data.data(), data.size(), to);
  }
  static absl::Status ReceiveFrom(NcclCommunicator& nccl, MutableBytes data,
                                  int from) {
    if (data.empty()) return absl::OkStatus();
    return nccl.Recv(data.data(), data.size(), from);
  }
  static absl::Status CopyOwn(NcclCommunicator& nccl, ConstBytes from,
                              MutableBytes to) {
    if (from.empty() || from.data() == to.data()) return absl::OkStatus();
    return nccl.Copy(from.data(), to.data(), from.size());
  }
  absl::Status SendToOthers(NcclCommunicator& nccl,
                            std::span<const ConstBytes> data) const {
    for (int other = 0; other < size_; ++other) {
      if (other == rank_) continue;
      RETURN_IF_ERROR(SendTo(nccl, data[Index(other)], other));
    }
    return absl::OkStatus();
  }
  absl::Status ReceiveFromOthers(NcclCommunicator& nccl,
                                 std::span<const MutableBytes> data) const {
    for (int other = 0; other < size_; ++other) {
      if (other == rank_) continue;
      RETURN_IF_ERROR(ReceiveFrom(nccl, data[Index(other)], other));
    }
    return absl::OkStatus();
  }

  const int rank_;
  const int size_;
  std::atomic<int64_t> num_begun_ = 0;
  // Of the thread that calls a collective.
  MarkPointer start_after_;
  // Destroyed in the reverse order: the watch ends first, which uses the
  // others.
  const std::unique_ptr<NcclLibrary> library_;
  const std::unique_ptr<Backend> control_;
  CommunicatorThread communicator_;
  DeviceMessages messages_;
  GroupWatch watch_;
};

// The id that rank 0 makes. The value of the key is the id after kIdMade, or a
// text after kIdFailed.
constexpr char kIdMade = 'i';
constexpr char kIdFailed = 'e';

absl::StatusOr<NcclId> ExchangeId(
    store::Store& store, int rank,
    const absl::StatusOr<std::unique_ptr<NcclLibrary>>& library,
    absl::Duration timeout) {
  if (rank == 0) {
    absl::StatusOr<NcclId> id = library.ok()
                                    ? (*library)->GetUniqueId()
                                    : absl::StatusOr<NcclId>(library.status());
    const std::string value =
        id.ok()
            ? std::string(1, kIdMade) + std::string(id->data(), id->size())
            : std::string(1, kIdFailed) + std::string(id.status().message());
    RETURN_IF_ERROR(store.Set("id", value, timeout));
    return id;
  }
  RETURN_IF_ERROR(library.status());
  absl::StatusOr<std::string> text = store.Get("id", timeout);
  if (!text.ok()) {
    return absl::Status(
        text.status().code(),
        absl::StrCat("rank 0 has not made the id of the communicator: ",
                     std::string(text.status().message())));
  }
  NcclId id;
  if (!text->empty() && text->front() == kIdFailed) {
    return absl::AbortedError(absl::StrCat(
        "rank 0 cannot make the id of the communicator: ", text->substr(1)));
  }
  if (text->size() != id.size() + 1) {
    return absl::DataLossError(absl::StrCat(
        "rank 0 has stored an id of ", text->size(), " bytes instead of ",
        id.size() + 1, ": another group may use the same keys"));
  }
  std::memcpy(id.data(), text->data() + 1, id.size());
  return id;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> MakeNcclBackend(
    store::Store& store, int rank, int size, absl::Duration timeout,
    absl::StatusOr<std::unique_ptr<NcclLibrary>> library,
    std::unique_ptr<Backend> control, const NcclConfig& config) {
  const async::MonotonicTime deadline =
      async::AddDelay(std::chrono::steady_clock::now(), timeout);
  const absl::StatusOr<NcclId> id = ExchangeId(store, rank, library, timeout);
  if (!id.ok()) {
    // The others need not wait for this rank.
    control->Abort(id.status());
    return id.status();
  }
  auto backend = std::make_unique<NcclBackend>(rank, size, *std::move(library),
                                               *id, std::move(control), config);
  RETURN_IF_ERROR(backend->Connect(deadline));
  return backend;
}

}  // namespace hawser::collectives

#include "tests/gpu/device_memory_backend.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/status_macros.h"
#include "collectives/reduce_op.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::tests {
namespace {

using async::MonotonicTime;
using collectives::Backend;
using collectives::ConstBytes;
using collectives::MutableBytes;
using collectives::Reduction;
using tensor::Tensor;

// Of the largest elements.
constexpr size_t kAlignment = 8;

absl::StatusOr<Tensor> Bytes(size_t bytes) {
  return Tensor::TryEmpty({static_cast<int64_t>(bytes)},
                          {.dtype = tensor::DType::kU8});
}

// Parts of memory of the CPU on a device. Those that lie behind each other do
// so there too.
template <class Part>
class Copies {
 public:
  static absl::StatusOr<Copies> Make(std::span<const Part> parts,
                                     tensor::Device device) {
    Copies copies;
    size_t end = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      const bool adjacent =
          i > 0 && parts[i].data() == parts[i - 1].data() + parts[i - 1].size();
      if (!adjacent) end = (end + 2 * kAlignment) / kAlignment * kAlignment;
      copies.places_.push_back(end);
      end += parts[i].size();
    }
    ASSIGN_OR_RETURN(Tensor staged, Bytes(end));
    auto* const bytes = static_cast<std::byte*>(staged.raw_data());
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].empty()) continue;
      std::memcpy(bytes + copies.places_[i], parts[i].data(), parts[i].size());
    }
    ASSIGN_OR_RETURN(copies.memory_, staged.To(device));
    auto* const base = static_cast<std::byte*>(copies.memory_.raw_data());
    for (size_t i = 0; i < parts.size(); ++i) {
      copies.parts_.push_back(Part(base + copies.places_[i], parts[i].size()));
    }
    return copies;
  }

  std::span<const Part> parts() const { return parts_; }
  Part front() const { return parts_[0]; }

  absl::Status CopyBack(std::span<const MutableBytes> to) const {
    ASSIGN_OR_RETURN(const Tensor here, memory_.To(tensor::kCpu));
    const auto* const bytes = static_cast<const std::byte*>(here.raw_data());
    for (size_t i = 0; i < to.size(); ++i) {
      if (to[i].empty()) continue;
      std::memcpy(to[i].data(), bytes + places_[i], to[i].size());
    }
    return absl::OkStatus();
  }

 private:
  Tensor memory_;
  std::vector<size_t> places_;
  std::vector<Part> parts_;
};

using Inputs = Copies<ConstBytes>;
using Outputs = Copies<MutableBytes>;

class DeviceMemoryBackend final : public Backend {
 public:
  DeviceMemoryBackend(std::unique_ptr<Backend> backend, tensor::Device device)
      : backend_(std::move(backend)), device_(device) {}

  std::string_view name() const override { return backend_->name(); }
  uint32_t max_tag() const override { return backend_->max_tag(); }

  absl::Status Barrier(MonotonicTime deadline) override {
    return backend_->Barrier(deadline);
  }
  absl::Status Broadcast(MutableBytes data, int root,
                         MonotonicTime deadline) override {
    return InPlace(std::span(&data, 1), [&](const Outputs& there) {
      return backend_->Broadcast(there.front(), root, deadline);
    });
  }
  absl::Status AllReduce(std::span<const MutableBytes> pieces,
                         const Reduction& reduction,
                         MonotonicTime deadline) override {
    return InPlace(pieces, [&](const Outputs& there) {
      return backend_->AllReduce(there.parts(), reduction, deadline);
    });
  }
  absl::Status Reduce(ConstBytes input, MutableBytes output,
                      const Reduction& reduction, int root,
                      MonotonicTime deadline) override {
    return Through(std::span(&input, 1), std::span(&output, 1),
                   [&](const Inputs& from, const Outputs& to) {
                     return backend_->Reduce(from.front(), to.front(),
                                             reduction, root, deadline);
                   });
  }
  absl::Status AllGather(ConstBytes input,
                         std::span<const MutableBytes> outputs,
                         MonotonicTime deadline) override {
    return Through(std::span(&input, 1), outputs,
                   [&](const Inputs& from, const Outputs& to) {
                     return backend_->AllGather(from.front(), to.parts(),
                                                deadline);
                   });
  }
  absl::Status Gather(ConstBytes input, std::span<const MutableBytes> outputs,
                      int root, MonotonicTime deadline) override {
    return Through(std::span(&input, 1), outputs,
                   [&](const Inputs& from, const Outputs& to) {
                     return backend_->Gather(from.front(), to.parts(), root,
                                             deadline);
                   });
  }
  absl::Status Scatter(std::span<const ConstBytes> inputs, MutableBytes output,
                       int root, MonotonicTime deadline) override {
    return Through(inputs, std::span(&output, 1),
                   [&](const Inputs& from, const Outputs& to) {
                     return backend_->Scatter(from.parts(), to.front(), root,
                                              deadline);
                   });
  }
  absl::Status ReduceScatter(std::span<const ConstBytes> inputs,
                             MutableBytes output, const Reduction& reduction,
                             MonotonicTime deadline) override {
    return Through(inputs, std::span(&output, 1),
                   [&](const Inputs& from, const Outputs& to) {
                     return backend_->ReduceScatter(from.parts(), to.front(),
                                                    reduction, deadline);
                   });
  }
  absl::Status AllToAll(std::span<const ConstBytes> inputs,
                        std::span<const MutableBytes> outputs,
                        MonotonicTime deadline) override {
    return Through(inputs, outputs, [&](const Inputs& from, const Outputs& to) {
      return backend_->AllToAll(from.parts(), to.parts(), deadline);
    });
  }

  async::Future<void> Send(ConstBytes data, int to, uint32_t tag,
                           MonotonicTime deadline) override {
    absl::StatusOr<Inputs> there = Inputs::Make(std::span(&data, 1), device_);
    if (!there.ok()) return async::MakeReadyFuture<void>(there.status());
    async::Future<void> sent =
        backend_->Send(there->front(), to, tag, deadline);
    // Keeps the copy.
    return std::move(sent).Then(
        [there = *std::move(there)](const absl::Status& status) {
          return status;
        });
  }
  async::Future<int> Receive(MutableBytes data, int from, uint32_t tag,
                             MonotonicTime deadline) override {
    absl::StatusOr<Outputs> there = Outputs::Make(std::span(&data, 1), device_);
    if (!there.ok()) return async::MakeReadyFuture<int>(there.status());
    async::Future<int> received =
        backend_->Receive(there->front(), from, tag, deadline);
    return std::move(received).Then(
        [there = *std::move(there),
         data](absl::StatusOr<int> result) -> absl::StatusOr<int> {
          if (result.ok()) {
            RETURN_IF_ERROR(there.CopyBack(std::span(&data, 1)));
          }
          return result;
        });
  }

  void Abort(const absl::Status& status) override { backend_->Abort(status); }

 private:
  template <class Run>
  absl::Status InPlace(std::span<const MutableBytes> data, Run run) {
    ASSIGN_OR_RETURN(const Outputs there, Outputs::Make(data, device_));
    RETURN_IF_ERROR(run(there));
    return there.CopyBack(data);
  }
  template <class Run>
  absl::Status Through(std::span<const ConstBytes> inputs,
                       std::span<const MutableBytes> outputs, Run run) {
    ASSIGN_OR_RETURN(const Inputs from, Inputs::Make(inputs, device_));
    ASSIGN_OR_RETURN(const Outputs to, Outputs::Make(outputs, device_));
    RETURN_IF_ERROR(run(from, to));
    return to.CopyBack(outputs);
  }

  const std::unique_ptr<Backend> backend_;
  const tensor::Device device_;
};

}  // namespace

std::unique_ptr<Backend> MakeDeviceMemoryBackend(
    std::unique_ptr<Backend> backend, tensor::Device device) {
  return std::make_unique<DeviceMemoryBackend>(std::move(backend), device);
}

}  // namespace hawser::tests

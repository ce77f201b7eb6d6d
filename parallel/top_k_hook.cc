#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "parallel/communication_hooks.h"
#include "ps/top_k_gradients.h"
#include "tensor/device.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::parallel {
namespace {

using collectives::ProcessGroup;
using tensor::DType;

// The tensors of all ranks, [ranks, n], on the CPU. They go over the backend of
// `device`.
absl::StatusOr<Tensor> GatherOver(ProcessGroup& group, tensor::Device device,
                                  const Tensor& own) {
  ASSIGN_OR_RETURN(const Tensor sent, own.To(device));
  ASSIGN_OR_RETURN(const Tensor all,
                   Tensor::TryEmpty({group.size(), own.num_elements()},
                                    {.dtype = own.dtype(), .device = device}));
  RETURN_IF_ERROR(group.AllGather(sent, all));
  return all.To(tensor::kCpu);
}

// The gradients that the buckets of one object keep.
class TopK {
 public:
  explicit TopK(double density) : density_(density) {}

  absl::Status Reduce(ProcessGroup& group, const GradientBucket& bucket) {
    if (bucket.flat.dtype() != DType::kF32 || density_ <= 0 || density_ > 1) {
      return absl::InvalidArgumentError(
          "TopKHook needs gradients in f32 and a density in (0, 1]");
    }
    // The bucket itself if it lies on the CPU.
    ASSIGN_OR_RETURN(Tensor gradients, bucket.flat.To(tensor::kCpu));
    // Buckets that were assigned anew begin without kept gradients.
    auto [kept, added] =
        kept_.try_emplace(bucket.parameters, ps::TopKGradients(density_));
    const Tensor chosen = kept->second.Choose(gradients);
    const int64_t count = chosen.num_elements();
    const int64_t sent = kept->second.NumChosen(count);
    std::vector<int64_t> places(static_cast<size_t>(sent));
    std::vector<float> values(static_cast<size_t>(sent));
    size_t next = 0;
    const float* const all = chosen.data<float>();
    for (int64_t i = 0; i < count && next < values.size(); ++i) {
      if (all[i] == 0) continue;
      places[next] = i;
      values[next++] = all[i];
    }
    const tensor::Device device = bucket.flat.device();
    ASSIGN_OR_RETURN(
        const Tensor all_places,
        GatherOver(group, device, Tensor::FromVector(places, {sent})));
    ASSIGN_OR_RETURN(
        const Tensor all_values,
        GatherOver(group, device, Tensor::FromVector(values, {sent})));
    float* const sum = gradients.data<float>();
    std::fill_n(sum, count, 0.0f);
    const auto share = 1 / static_cast<float>(group.size());
    for (int64_t i = 0; i < group.size() * sent; ++i) {
      sum[all_places.data<int64_t>()[i]] += share * all_values.data<float>()[i];
    }
    if (device.is_cpu()) return absl::OkStatus();
    Tensor flat = bucket.flat;
    return flat.CopyFrom(gradients);
  }

 private:
  const double density_;
  std::map<std::vector<size_t>, ps::TopKGradients> kept_;
};

}  // namespace

CommunicationHook TopKHook(double density) {
  return [state = std::make_shared<TopK>(density)](
             ProcessGroup& group, const GradientBucket& bucket) {
    return group.RunInOrder(
        [state, &group, bucket] { return state->Reduce(group, bucket); });
  };
}

}  // namespace hawser::parallel

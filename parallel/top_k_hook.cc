#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "async/status_macros.h"
#include "parallel/communication_hooks.h"
#include "ps/top_k_gradients.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::parallel {
namespace {

using collectives::ProcessGroup;
using tensor::DType;

// The gradients that the buckets of one object keep.
class TopK {
 public:
  explicit TopK(double density) : density_(density) {}

  absl::Status Reduce(ProcessGroup& group, const GradientBucket& bucket) {
    if (bucket.flat.dtype() != DType::kF32 || density_ <= 0 || density_ > 1) {
      return absl::InvalidArgumentError(
          "TopKHook needs gradients in f32 and a density in (0, 1]");
    }
    // Buckets that were assigned anew begin without kept gradients.
    auto [kept, added] =
        kept_.try_emplace(bucket.parameters, ps::TopKGradients(density_));
    const Tensor chosen = kept->second.Choose(bucket.flat);
    const int64_t count = chosen.num_elements();
    const int64_t sent = std::clamp<int64_t>(
        static_cast<int64_t>(density_ * static_cast<double>(count)), 1, count);
    std::vector<int64_t> places(static_cast<size_t>(sent));
    std::vector<float> values(static_cast<size_t>(sent));
    size_t next = 0;
    const float* const all = chosen.data<float>();
    for (int64_t i = 0; i < count && next < values.size(); ++i) {
      if (all[i] == 0) continue;
      places[next] = i;
      values[next++] = all[i];
    }
    Tensor all_places =
        Tensor::Empty({group.size(), sent}, {.dtype = DType::kI64});
    Tensor all_values = Tensor::Empty({group.size(), sent});
    RETURN_IF_ERROR(
        group.AllGather(Tensor::FromVector(places, {sent}), all_places));
    RETURN_IF_ERROR(
        group.AllGather(Tensor::FromVector(values, {sent}), all_values));
    Tensor flat = bucket.flat;
    float* const sum = flat.data<float>();
    std::fill_n(sum, count, 0.0f);
    const auto share = 1 / static_cast<float>(group.size());
    for (int64_t i = 0; i < group.size() * sent; ++i) {
      sum[all_places.data<int64_t>()[i]] += share * all_values.data<float>()[i];
    }
    return absl::OkStatus();
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

#include "parallel/zero_optimizer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "async/status_macros.h"
#include "autograd/variable.h"

namespace hawser::parallel {

using collectives::Work;

std::vector<int> AssignOwners(const std::vector<int64_t>& sizes, int ranks) {
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return sizes[a] > sizes[b]; });
  std::vector<int64_t> elements(static_cast<size_t>(ranks));
  std::vector<int> owners(sizes.size());
  for (const size_t i : order) {
    const auto least = std::min_element(elements.begin(), elements.end());
    owners[i] = static_cast<int>(least - elements.begin());
    *least += sizes[i];
  }
  return owners;
}

absl::StatusOr<std::unique_ptr<ZeroOptimizer>> ZeroOptimizer::Create(
    std::vector<Tensor> parameters, const optim::RuleSpec& rule,
    collectives::ProcessGroup& group) {
  // Finds what is wrong with parameters that other ranks own.
  RETURN_IF_ERROR(optim::Optimizer::Create(parameters, rule));
  std::vector<int64_t> sizes;
  sizes.reserve(parameters.size());
  for (const Tensor& each : parameters) sizes.push_back(each.num_elements());
  std::vector<int> owners = AssignOwners(sizes, group.size());
  std::vector<Tensor> own;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (owners[i] == group.rank()) own.push_back(parameters[i]);
  }
  std::unique_ptr<ZeroOptimizer> optimizer(
      new ZeroOptimizer(std::move(parameters), std::move(owners), group));
  if (!own.empty()) {
    ASSIGN_OR_RETURN(optimizer->local_,
                     optim::Optimizer::Create(std::move(own), rule));
  }
  return optimizer;
}

absl::Status ZeroOptimizer::Step() {
  if (local_ != nullptr) RETURN_IF_ERROR(local_->Step());
  std::vector<Work> works;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!autograd::Grad(parameters_[i]).defined()) continue;
    works.push_back(group_.BroadcastAsync(parameters_[i].Detach(), owners_[i]));
  }
  absl::Status status;
  for (const Work& work : works) {
    if (status.ok()) {
      status = work.Wait();
    } else {
      // The memory is used until then.
      (void)work.Wait();
    }
  }
  return status;
}

void ZeroOptimizer::ZeroGrad() {
  for (const Tensor& each : parameters_) autograd::ZeroGrad(each);
}

absl::Status ZeroOptimizer::SetOption(std::string_view option, double value) {
  return local_ == nullptr ? absl::OkStatus()
                           : local_->SetOption(option, value);
}

}  // namespace hawser::parallel

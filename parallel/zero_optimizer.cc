#include "parallel/zero_optimizer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "async/status_macros.h"
#include "autograd/variable.h"
#include "optim/optimizer_file.h"
#include "optim/update_rule.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace hawser::parallel {

using collectives::Work;
using tensor::DType;
using tensor::SafetensorsFile;

namespace {

// One line for each tensor: "state.3.exp_avg f32 4 5" has the shape [4, 5].
std::string Describe(const SafetensorsFile& file) {
  std::vector<std::string> lines;
  for (const auto& [name, tensor] : file.tensors) {
    std::string line =
        absl::StrCat(name, " ", std::string(tensor::DTypeName(tensor.dtype())));
    for (const int64_t size : tensor.shape()) absl::StrAppend(&line, " ", size);
    lines.push_back(std::move(line));
  }
  return absl::StrJoin(lines, "\n");
}

// The tensor of such a line, not filled, and its name.
absl::StatusOr<std::pair<std::string, Tensor>> Allocate(
    const std::string& line) {
  const std::vector<std::string> words = absl::StrSplit(line, ' ');
  const auto dtype =
      words.size() < 2 ? std::nullopt : tensor::DTypeFromName(words[1]);
  std::vector<int64_t> sizes(words.size() < 2 ? 0 : words.size() - 2);
  bool valid = dtype.has_value();
  for (size_t i = 0; i < sizes.size(); ++i) {
    valid = valid && absl::SimpleAtoi(words[i + 2], &sizes[i]);
  }
  if (!valid) {
    return absl::InternalError(
        absl::StrCat("\"", line, "\" does not describe a tensor"));
  }
  ASSIGN_OR_RETURN(const tensor::Shape shape, tensor::Shape::Create(sizes));
  ASSIGN_OR_RETURN(Tensor tensor, Tensor::TryEmpty(shape, {.dtype = *dtype}));
  return std::make_pair(words[0], std::move(tensor));
}

}  // namespace

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
  // Also finds what is wrong with parameters that other ranks own.
  ASSIGN_OR_RETURN(auto options, optim::Optimizer::Create(parameters, rule));
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
  optimizer->options_ = std::move(options);
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
  RETURN_IF_ERROR(options_->SetOption(option, value));
  return local_ == nullptr ? absl::OkStatus()
                           : local_->SetOption(option, value);
}

absl::StatusOr<SafetensorsFile> ZeroOptimizer::ConsolidateState(int to) {
  if (to < 0 || to >= group_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the state is to be collected on rank ", to,
                     " of a group of ", group_.size()));
  }
  ASSIGN_OR_RETURN(SafetensorsFile state, OwnState());
  if (group_.rank() != to) {
    RETURN_IF_ERROR(SendTensors(state, to));
    return SafetensorsFile();
  }
  for (int rank = 0; rank < group_.size(); ++rank) {
    if (rank == to) continue;
    RETURN_IF_ERROR(ReceiveTensors(state, rank));
  }
  return state;
}

absl::StatusOr<SafetensorsFile> ZeroOptimizer::OwnState() const {
  const optim::RuleSpec& rule = options_->rule(0);
  ASSIGN_OR_RETURN(const auto all, optim::Optimizer::Create(parameters_, rule));
  std::vector<optim::ParameterState> states(parameters_.size());
  size_t own = 0;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (owners_[i] == group_.rank()) states[i] = local_->state(own++);
  }
  RETURN_IF_ERROR(all->Restore({rule}, std::move(states)));
  return optim::GetState(*all);
}

absl::Status ZeroOptimizer::SendTensors(const SafetensorsFile& state, int to) {
  const std::string text = Describe(state);
  const auto bytes = static_cast<int64_t>(text.size());
  RETURN_IF_ERROR(group_.Send(Tensor::FromVector<int64_t>({bytes}, {}), to));
  RETURN_IF_ERROR(
      group_.Send(Tensor::FromVector(
                      std::vector<uint8_t>(text.begin(), text.end()), {bytes}),
                  to));
  for (const auto& [name, tensor] : state.tensors) {
    RETURN_IF_ERROR(group_.Send(tensor, to));
  }
  return absl::OkStatus();
}

absl::Status ZeroOptimizer::ReceiveTensors(SafetensorsFile& state, int from) {
  const Tensor length = Tensor::Zeros({}, {.dtype = DType::kI64});
  RETURN_IF_ERROR(group_.Receive(length, from));
  ASSIGN_OR_RETURN(const int64_t bytes, length.item<int64_t>());
  const Tensor text = Tensor::Zeros({bytes}, {.dtype = DType::kU8});
  RETURN_IF_ERROR(group_.Receive(text, from));
  const std::vector<uint8_t> characters = text.ToVector<uint8_t>();
  const std::string lines(characters.begin(), characters.end());
  for (const auto line : absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    ASSIGN_OR_RETURN(auto received, Allocate(std::string(line)));
    RETURN_IF_ERROR(group_.Receive(received.second, from));
    state.tensors.push_back(std::move(received));
  }
  return absl::OkStatus();
}

absl::Status ZeroOptimizer::SetState(const SafetensorsFile& state) {
  ASSIGN_OR_RETURN(const auto all,
                   optim::Optimizer::Create(parameters_, options_->rule(0)));
  RETURN_IF_ERROR(optim::SetState(*all, state));
  std::vector<optim::ParameterState> own;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (owners_[i] == group_.rank()) own.push_back(all->state(i));
  }
  const std::vector<optim::RuleSpec> rules = {all->rule(0)};
  if (local_ != nullptr)
    RETURN_IF_ERROR(local_->Restore(rules, std::move(own)));
  return options_->Restore(
      rules, std::vector<optim::ParameterState>(parameters_.size()));
}

}  // namespace hawser::parallel

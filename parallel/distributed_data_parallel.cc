#include "parallel/distributed_data_parallel.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "autograd/accumulate_grad.h"
#include "autograd/node.h"
#include "autograd/variable.h"
#include "dist_autograd/current_context.h"
#include "dist_autograd/send_function.h"
#include "parallel/first_names.h"
#include "tensor/dtype.h"

namespace hawser::parallel {
namespace {

// One line for each tensor: "weight f32[3, 4]".
std::string Describe(const nn::Module& module) {
  std::vector<std::string> lines;
  for (const auto& [name, tensor] : module.named_parameters()) {
    lines.push_back(absl::StrCat(
        "parameter ", name, " ", tensor.ToString(),
        autograd::RequiresGrad(tensor) ? "" : " without gradient"));
  }
  for (const auto& [name, tensor] : module.named_buffers()) {
    lines.push_back(absl::StrCat("buffer ", name, " ", tensor.ToString()));
  }
  return absl::StrJoin(lines, "\n");
}

Tensor ToTensor(const std::string& text) {
  return Tensor::FromVector(std::vector<uint8_t>(text.begin(), text.end()),
                            {static_cast<int64_t>(text.size())});
}

std::string ToText(const Tensor& tensor) {
  const std::vector<uint8_t> bytes = tensor.ToVector<uint8_t>();
  return {bytes.begin(), bytes.end()};
}

// Says where two models differ.
std::string FirstDifference(const std::string& mine, const std::string& first) {
  const std::vector<std::string> a = absl::StrSplit(mine, '\n');
  const std::vector<std::string> b = absl::StrSplit(first, '\n');
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i] != b[i]) return absl::StrCat("has ", a[i], " instead of ", b[i]);
  }
  return absl::StrCat("has ", a.size(), " parameters and buffers instead of ",
                      b.size());
}

// What a rank does in a pass.
enum Activity : uint8_t { kJoined, kReduces, kLocal };

// kOutOfRange: some ranks have joined, and others have not.
absl::Status CheckSameActivity(const std::vector<uint8_t>& activity) {
  std::vector<size_t> joined;
  for (size_t rank = 0; rank < activity.size(); ++rank) {
    if (activity[rank] == kJoined) joined.push_back(rank);
  }
  if (joined.empty() || joined.size() == activity.size()) {
    return absl::OkStatus();
  }
  return absl::OutOfRangeError(
      absl::StrCat("the training ends on all ranks: there are no more batches "
                   "on ranks ",
                   absl::StrJoin(joined, ", ")));
}

std::optional<int> HighestActive(const std::vector<uint8_t>& activity) {
  for (size_t rank = activity.size(); rank-- > 0;) {
    if (activity[rank] != kJoined) return static_cast<int>(rank);
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<std::unique_ptr<DistributedDataParallel>>
DistributedDataParallel::Create(nn::Module& module,
                                collectives::ProcessGroup& group,
                                DistributedDataParallelOptions options) {
  std::unique_ptr<DistributedDataParallel> parallel(
      new DistributedDataParallel(module, group, std::move(options)));
  int64_t gradient_bytes = 0;
  for (auto& [name, parameter] : module.named_parameters()) {
    if (autograd::RequiresGrad(parameter)) {
      parallel->parameters_.emplace_back(name, parameter);
      gradient_bytes += parameter.byte_size();
    }
  }
  RETURN_IF_ERROR(parallel->CheckSameModel());
  if (parallel->parameters_.empty()) {
    return absl::InvalidArgumentError(
        "no parameter of the module requires a gradient");
  }
  RETURN_IF_ERROR(parallel->CopyModel(0));
  ASSIGN_OR_RETURN(
      parallel->reducer_,
      Reducer::Create(
          group, parallel->parameters_,
          {.first_bucket_bytes = parallel->options_.first_bucket_bytes,
           .bucket_bytes = parallel->options_.bucket_bytes.value_or(
               DefaultBucketBytes(gradient_bytes)),
           .hook = parallel->options_.hook}));
  return parallel;
}

absl::Status DistributedDataParallel::CheckSameModel() {
  const std::string mine = Describe(module_);
  Tensor length =
      Tensor::FromVector<int64_t>({static_cast<int64_t>(mine.size())}, {1});
  RETURN_IF_ERROR(group_.Broadcast(length, 0));
  const int64_t bytes = *length.item<int64_t>();
  Tensor text = group_.rank() == 0
                    ? ToTensor(mine)
                    : Tensor::Zeros({bytes}, {.dtype = tensor::DType::kU8});
  RETURN_IF_ERROR(group_.Broadcast(text, 0));
  const std::string first = ToText(text);
  // All ranks get the same error: each says how it differs.
  constexpr size_t kErrorBytes = 512;
  std::string error = mine == first ? "" : FirstDifference(mine, first);
  error.resize(kErrorBytes);
  Tensor errors = Tensor::Zeros({group_.size(), kErrorBytes},
                                {.dtype = tensor::DType::kU8});
  RETURN_IF_ERROR(group_.AllGather(ToTensor(error), errors));
  const std::string all = ToText(errors);
  for (int rank = 0; rank < group_.size(); ++rank) {
    const std::string of_rank =
        all.substr(static_cast<size_t>(rank) * kErrorBytes, kErrorBytes)
            .c_str();
    if (of_rank.empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the model of rank ", rank,
                     " differs from that of rank 0: it ", of_rank));
  }
  return absl::OkStatus();
}

absl::Status DistributedDataParallel::CopyModel(int root) {
  for (const auto& [name, parameter] : module_.named_parameters()) {
    RETURN_IF_ERROR(group_.Broadcast(parameter.Detach(), root));
    parameter.BumpVersion();
  }
  return BroadcastBuffers(root);
}

absl::Status DistributedDataParallel::BroadcastBuffers(int root) {
  for (const auto& [name, buffer] : module_.named_buffers()) {
    RETURN_IF_ERROR(group_.Broadcast(buffer, root));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint8_t>> DistributedDataParallel::ShareActivity(
    uint8_t own) {
  const Tensor all =
      Tensor::Zeros({group_.size()}, {.dtype = tensor::DType::kU8});
  RETURN_IF_ERROR(
      group_.AllGather(Tensor::FromVector<uint8_t>({own}, {1}), all));
  std::vector<uint8_t> activity = all.ToVector<uint8_t>();
  if (options_.uneven_inputs == UnevenInputs::kEndForAll) {
    RETURN_IF_ERROR(CheckSameActivity(activity));
  }
  return activity;
}

absl::Status DistributedDataParallel::BeforeForward() {
  int root = 0;
  if (options_.uneven_inputs != UnevenInputs::kNone) {
    ASSIGN_OR_RETURN(const std::vector<uint8_t> activity,
                     ShareActivity(num_no_sync_ > 0 ? kLocal : kReduces));
    root = *HighestActive(activity);
    if (options_.uneven_inputs == UnevenInputs::kAverageOverActive) {
      const auto joined =
          std::count(activity.begin(), activity.end(), uint8_t{kJoined});
      scale_ = static_cast<double>(group_.size()) /
               static_cast<double>(group_.size() - joined);
    }
  }
  return num_no_sync_ > 0 ? absl::OkStatus() : BeginReducing(root);
}

absl::Status DistributedDataParallel::BeginReducing(int root) {
  // The order may differ in each pass if parameters may be unused.
  if (num_passes_++ == 1 && !options_.find_unused_parameters) {
    RETURN_IF_ERROR(reducer_->Rebuild());
  }
  return options_.broadcast_buffers ? BroadcastBuffers(root) : absl::OkStatus();
}

absl::Status DistributedDataParallel::Join() {
  if (options_.uneven_inputs == UnevenInputs::kNone) {
    return absl::FailedPreconditionError(
        "Join needs DistributedDataParallelOptions::uneven_inputs");
  }
  RETURN_IF_ERROR(reducer_->BeginLocalPass());
  int64_t num_waited = 0;
  while (true) {
    ASSIGN_OR_RETURN(const std::vector<uint8_t> activity,
                     ShareActivity(kJoined));
    const std::optional<int> active = HighestActive(activity);
    if (!active.has_value()) break;
    ++num_waited;
    if (activity[static_cast<size_t>(*active)] == kLocal) continue;
    RETURN_IF_ERROR(BeginReducing(*active));
    RETURN_IF_ERROR(reducer_->ReduceZeros(options_.find_unused_parameters &&
                                          !options_.static_graph));
  }
  // Of the rank that has waited for the fewest passes.
  const Tensor waited =
      Tensor::Zeros({group_.size()}, {.dtype = tensor::DType::kI64});
  RETURN_IF_ERROR(
      group_.AllGather(Tensor::FromVector<int64_t>({num_waited}, {1}), waited));
  int last = 0;
  for (int rank = 1; rank < group_.size(); ++rank) {
    if (waited.data<int64_t>()[rank] <= waited.data<int64_t>()[last]) {
      last = rank;
    }
  }
  return CopyModel(last);
}

absl::Status DistributedDataParallel::AfterForward(
    const std::vector<Tensor>& outputs) {
  if (num_no_sync_ > 0) return reducer_->BeginLocalPass();
  if (static_unused_.has_value()) {
    return reducer_->BeginPass({.unused = *static_unused_, .scale = scale_});
  }
  std::vector<size_t> unused = UnusedParameters(outputs);
  if (options_.static_graph) static_unused_ = unused;
  if (!unused.empty() && !options_.find_unused_parameters &&
      !options_.static_graph) {
    return UnusedError(unused);
  }
  return reducer_->BeginPass(
      {.unused = std::move(unused),
       .varies = options_.find_unused_parameters && !options_.static_graph,
       .scale = scale_});
}

std::vector<size_t> DistributedDataParallel::UnusedParameters(
    const std::vector<Tensor>& outputs) const {
  absl::flat_hash_set<const autograd::Node*> seen;
  absl::flat_hash_set<uint64_t> used;
  // Keeps accumulators alive, which their graph alone may own.
  std::vector<std::shared_ptr<autograd::Node>> next;
  const auto visit = [&](const autograd::Edge& edge) {
    if (edge && seen.insert(edge.node.get()).second) next.push_back(edge.node);
  };
  for (const Tensor& output : outputs) visit(autograd::GradEdge(output));
  if (const auto* context = dist_autograd::kCurrentContext.get()) {
    // Gradients come back to what was sent to other workers.
    for (const auto& send : (*context)->messages().sends) visit({send, 0});
  }
  while (!next.empty()) {
    const std::shared_ptr<autograd::Node> node = std::move(next.back());
    next.pop_back();
    if (const autograd::AccumulateGrad* leaf = node->accumulator()) {
      used.insert(leaf->variable().id());
    }
    for (const autograd::Edge& edge : node->next_edges()) visit(edge);
  }
  std::vector<size_t> unused;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!used.contains(parameters_[i].second.id())) unused.push_back(i);
  }
  return unused;
}

absl::Status DistributedDataParallel::UnusedError(
    const std::vector<size_t>& unused) const {
  return absl::FailedPreconditionError(absl::StrCat(
      unused.size(),
      " parameters do not contribute to the result of Forward "
      "on rank ",
      group_.rank(), ": ", FirstNames(parameters_, unused),
      "; set find_unused_parameters, or return all outputs from which the "
      "backward pass starts"));
}

}  // namespace hawser::parallel

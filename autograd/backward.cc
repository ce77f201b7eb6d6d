#include "autograd/backward.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "autograd/grad_mode.h"
#include "autograd/internal/graph_walk.h"
#include "autograd/variable.h"

namespace hawser::autograd {
namespace {

// Edges at which a pass starts, with their gradients.
struct Seeds {
  std::vector<Edge> edges;
  std::vector<Tensor> gradients;
};

absl::StatusOr<Tensor> SeedFor(const Tensor& root, const Tensor& gradient) {
  if (!gradient.defined()) {
    if (root.num_elements() != 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Backward: root ", root.ToString(),
          " does not have exactly one element: pass its gradient as well"));
    }
    return Tensor::Ones(root.shape(), {root.dtype(), root.device()});
  }
  if (gradient.shape() != root.shape() || gradient.dtype() != root.dtype()) {
    return absl::InvalidArgumentError(
        absl::StrCat("Backward: gradient ", gradient.ToString(), " for root ",
                     root.ToString()));
  }
  return gradient;
}

absl::StatusOr<Seeds> MakeSeeds(std::span<const Tensor> roots,
                                std::span<const Tensor> gradients) {
  if (!gradients.empty() && gradients.size() != roots.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("Backward: ", gradients.size(), " gradients for ",
                     roots.size(), " roots"));
  }
  if (roots.empty()) {
    return absl::InvalidArgumentError("Backward: needs at least one root");
  }
  Seeds seeds;
  for (size_t i = 0; i < roots.size(); ++i) {
    if (!roots[i].defined()) {
      return absl::InvalidArgumentError(
          absl::StrCat("Backward: root ", i, " is undefined"));
    }
    seeds.edges.push_back(GradEdge(roots[i]));
    if (!seeds.edges.back()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Backward: root ", roots[i].ToString(),
          " does not require a gradient: it was not recorded from a "
          "leaf that does"));
    }
    ASSIGN_OR_RETURN(
        Tensor seed,
        SeedFor(roots[i], gradients.empty() ? Tensor() : gradients[i]));
    seeds.gradients.push_back(std::move(seed));
  }
  return seeds;
}

absl::Status RunPass(internal::GraphWalk& pass, std::vector<Tensor> gradients) {
  NoGradGuard no_grad;
  RETURN_IF_ERROR(pass.Start(gradients));
  gradients.clear();
  RETURN_IF_ERROR(pass.RunReady());
  pass.CheckComplete();
  return absl::OkStatus();
}

}  // namespace

absl::Status Backward(const Tensor& root, BackwardOptions options) {
  return Backward({&root, 1}, {}, options);
}

absl::Status Backward(std::span<const Tensor> roots,
                      std::span<const Tensor> gradients,
                      BackwardOptions options) {
  ASSIGN_OR_RETURN(Seeds seeds, MakeSeeds(roots, gradients));
  internal::GraphWalk pass(options.retain_graph, /*capture=*/nullptr);
  RETURN_IF_ERROR(pass.Build(std::move(seeds.edges), {}));
  return RunPass(pass, std::move(seeds.gradients));
}

absl::StatusOr<std::vector<Tensor>> Grad(std::span<const Tensor> outputs,
                                         std::span<const Tensor> inputs,
                                         GradOptions options) {
  ASSIGN_OR_RETURN(Seeds seeds, MakeSeeds(outputs, options.output_gradients));
  std::vector<Edge> targets;
  for (size_t i = 0; i < inputs.size(); ++i) {
    targets.push_back(GradEdge(inputs[i]));
    if (!targets.back()) {
      return absl::InvalidArgumentError(
          absl::StrCat("Grad: input ", i, " does not require a gradient"));
    }
  }
  internal::GraphWalk pass(options.retain_graph, /*capture=*/nullptr);
  RETURN_IF_ERROR(pass.Build(std::move(seeds.edges), {}));
  pass.RestrictTo(targets);
  RETURN_IF_ERROR(RunPass(pass, std::move(seeds.gradients)));
  std::vector<Tensor> gradients = pass.TakeCaptured();
  for (size_t i = 0; i < gradients.size() && !options.allow_unused; ++i) {
    if (!gradients[i].defined()) {
      return absl::InvalidArgumentError(
          absl::StrCat("Grad: the outputs do not depend on input ", i, ", ",
                       inputs[i].ToString(),
                       "; set allow_unused to get an undefined gradient"));
    }
  }
  return gradients;
}

}  // namespace hawser::autograd

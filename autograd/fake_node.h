#ifndef HAWSER_AUTOGRAD_FAKE_NODE_H_
#define HAWSER_AUTOGRAD_FAKE_NODE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "autograd/node.h"
#include "tensor/tensor.h"

namespace hawser::autograd {

// A node whose backward step is given by a test.
class FakeNode final : public Node {
 public:
  using Step = std::function<absl::StatusOr<std::vector<Tensor>>(
      std::vector<Tensor> grad_outputs)>;

  FakeNode(std::string name, std::vector<Edge> next_edges, uint32_t num_inputs,
           Step step)
      : Node(std::move(next_edges), num_inputs),
        name_(std::move(name)),
        step_(std::move(step)) {}

  // Passes its gradient to each of its edges, and adds its name to `log` unless
  // that is null.
  FakeNode(std::string name, std::vector<Edge> next_edges,
           std::vector<std::string>* log = nullptr)
      : FakeNode(std::move(name), std::move(next_edges), 1, Step()) {
    step_ = [this, log](std::vector<Tensor> grad_outputs) {
      if (log != nullptr) log->push_back(name_);
      return std::vector<Tensor>(this->next_edges().size(), grad_outputs[0]);
    };
  }

  void set_runs_without_gradients(bool value) {
    runs_without_gradients_ = value;
  }

  std::string_view name() const override { return name_; }
  absl::StatusOr<std::vector<Tensor>> Apply(
      std::vector<Tensor> grad_outputs) override {
    return step_(std::move(grad_outputs));
  }
  void ReleaseSavedTensors() override { ++num_releases_; }
  bool runs_without_gradients() const override {
    return runs_without_gradients_;
  }

  int num_releases() const { return num_releases_; }

 private:
  const std::string name_;
  Step step_;
  bool runs_without_gradients_ = false;
  int num_releases_ = 0;
};

}  // namespace hawser::autograd

#endif  // HAWSER_AUTOGRAD_FAKE_NODE_H_

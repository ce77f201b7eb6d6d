#ifndef HAWSER_NN_SEQUENTIAL_H_
#define HAWSER_NN_SEQUENTIAL_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "nn/module.h"

namespace hawser::nn {

// A chain of layers, each applied to the result of the previous one.
class Sequential final : public Layer {
 public:
  Sequential() = default;

  // Adds a layer at the end. The default name is its index: "0", "1", ...
  void Append(std::unique_ptr<Layer> layer);
  void Append(std::string name, std::unique_ptr<Layer> layer);

  // Returns the input if there are no layers. An error names the layer.
  absl::StatusOr<Tensor> Forward(const Tensor& x) const override;

 private:
  std::vector<std::pair<std::string, Layer*>> layers_;
};

}  // namespace hawser::nn

#endif  // HAWSER_NN_SEQUENTIAL_H_

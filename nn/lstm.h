#ifndef HAWSER_NN_LSTM_H_
#define HAWSER_NN_LSTM_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "nn/dropout.h"
#include "nn/module.h"
#include "tensor/dtype.h"
#include "tensor/ops/random.h"

namespace hawser::nn {

// State of an LSTM. Both are [num_layers, n, hidden_size]; undefined: zeros.
struct LSTMState {
  Tensor hidden = {};
  Tensor cell = {};
};

// Long short-term memory (Hochreiter and Schmidhuber, 1997) with one or more
// layers and PyTorch's parameters. The rows of the weights belong to the gates
// i, f, g, o, in this order. In each step:
//
//   i, f, o = sigmoid(.), g = tanh(.)  of  w_ih x + b_ih + w_hh h + b_hh
//   c = f * c + i * g
//   h = o * tanh(c)
//
// Parameters of layer k: "weight_ih_lk" [4 hidden, input or hidden],
// "weight_hh_lk" [4 hidden, hidden], "bias_ih_lk", "bias_hh_lk" [4 hidden].
// Initial values: uniform in [-1, 1] / sqrt(hidden_size).
class LSTM final : public Module {
 public:
  struct Options {
    int64_t input_size = 0;
    int64_t hidden_size = 0;
    int64_t num_layers = 1;
    bool bias = true;
    // True: sequences are [n, time, width]; false: [time, n, width].
    bool batch_first = false;
    // Dropout probability for the outputs of all layers except the last.
    double dropout = 0;
    tensor::DType dtype = tensor::DType::kF32;
  };

  struct Result {
    Tensor output;    // The hidden state of the last layer after each step.
    LSTMState state;  // After the last step.
  };

  // The generator determines the initial values and, later, the dropped
  // elements.
  //
  // kInvalidArgument: a size is not positive, or another option is out of
  // range.
  static absl::StatusOr<std::unique_ptr<LSTM>> Create(
      const Options& options, std::shared_ptr<tensor::Generator> generator);

  // kInvalidArgument: a shape does not match, or `x` has zero steps.
  absl::StatusOr<Result> Forward(const Tensor& x,
                                 const LSTMState& state = {}) const;

 private:
  struct Weights {
    Tensor weight_ih, weight_hh, bias_ih, bias_hh;
  };
  // State of one layer: [n, hidden_size].
  struct Cell {
    Tensor hidden = {};
    Tensor cell = {};
  };

  explicit LSTM(const Options& options)
      : options_(options), layers_(options.num_layers) {}

  absl::Status MakeLayer(int64_t layer, tensor::Generator& generator);
  absl::Status CheckInputs(const Tensor& x, const LSTMState& state) const;
  absl::StatusOr<Cell> FirstCell(const Tensor& x, const LSTMState& state,
                                 int64_t layer) const;
  // Returns the output [time, n, hidden_size] of one layer. Updates `cell` to
  // the state after the last step.
  absl::StatusOr<Tensor> RunLayer(const Tensor& x, const Weights& weights,
                                  Cell& cell) const;

  const Options options_;
  // Never resized, since parameters are registered by address.
  std::vector<Weights> layers_;
  Dropout* dropout_ = nullptr;
};

}  // namespace hawser::nn

#endif  // HAWSER_NN_LSTM_H_

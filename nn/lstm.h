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

// Both [num_layers, n, hidden_size]; undefined stands for zeros.
struct LSTMState {
  Tensor hidden = {};
  Tensor cell = {};
};

// Long short-term memory (Hochreiter and Schmidhuber, 1997), one or more
// layers, with PyTorch's parameters. For each step, rows of the weights being
// the gates i, f, g, o in this order:
//
//   i, f, o = sigmoid(.), g = tanh(.)  of  w_ih x + b_ih + w_hh h + b_hh
//   c = f * c + i * g
//   h = o * tanh(c)
//
// Parameters of layer k, uniform within 1 / sqrt(hidden_size) of 0 at first:
// "weight_ih_lk" [4 hidden, input or hidden], "weight_hh_lk" [4 hidden,
// hidden], "bias_ih_lk", "bias_hh_lk" [4 hidden].
class LSTM final : public Module {
 public:
  struct Options {
    int64_t input_size = 0;
    int64_t hidden_size = 0;
    int64_t num_layers = 1;
    bool bias = true;
    // Whether sequences are [n, time, width] and not [time, n, width].
    bool batch_first = false;
    // Of the outputs of every layer but the last.
    double dropout = 0;
    tensor::DType dtype = tensor::DType::kF32;
  };

  struct Result {
    Tensor output;    // The hidden state of the last layer after each step.
    LSTMState state;  // After the last step.
  };

  // The generator gives the first values and, later, what is dropped.
  //
  // kInvalidArgument: a size is not above 0, or another option is out of range.
  static absl::StatusOr<std::unique_ptr<LSTM>> Create(
      const Options& options, std::shared_ptr<tensor::Generator> generator);

  // kInvalidArgument: shapes do not fit, or there is no step.
  absl::StatusOr<Result> Forward(const Tensor& x,
                                 const LSTMState& state = {}) const;

 private:
  struct Weights {
    Tensor weight_ih, weight_hh, bias_ih, bias_hh;
  };
  // Of one layer: [n, hidden_size].
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
  // The output [time, n, hidden_size] of one layer; `cell` goes to the end.
  absl::StatusOr<Tensor> RunLayer(const Tensor& x, const Weights& weights,
                                  Cell& cell) const;

  const Options options_;
  // Never resized: parameters are registered by address.
  std::vector<Weights> layers_;
  Dropout* dropout_ = nullptr;
};

}  // namespace hawser::nn

#endif  // HAWSER_NN_LSTM_H_

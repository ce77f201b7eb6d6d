#include "nn/lstm.h"

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/join.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/view.h"
#include "nn/internal/layer_error.h"
#include "tensor/ops/random.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::nn {

absl::StatusOr<std::unique_ptr<LSTM>> LSTM::Create(
    const Options& o, std::shared_ptr<tensor::Generator> generator) {
  constexpr int64_t kMostLayers = int64_t{1} << 20;
  RETURN_IF_ERROR(internal::CheckSizes(
      "LSTM", {{"input_size", o.input_size},
               {"hidden_size", o.hidden_size},
               {"num_layers", o.num_layers, kMostLayers}}));
  ASSIGN_OR_RETURN(auto dropout, Dropout::Create(o.dropout, generator));
  auto module = std::unique_ptr<LSTM>(new LSTM(o));
  for (int64_t layer = 0; layer < o.num_layers; ++layer) {
    RETURN_IF_ERROR(module->MakeLayer(layer, *generator));
  }
  module->dropout_ = module->RegisterModule("dropout", std::move(dropout));
  return module;
}

absl::Status LSTM::MakeLayer(int64_t layer, tensor::Generator& generator) {
  const double bound = 1 / std::sqrt(static_cast<double>(options_.hidden_size));
  const auto uniform = [&](const tensor::Shape& shape) {
    return tensor::Uniform(shape, -bound, bound, generator,
                           {.dtype = options_.dtype});
  };
  const int64_t rows = 4 * options_.hidden_size;
  const int64_t width = layer == 0 ? options_.input_size : options_.hidden_size;
  Weights& w = layers_[layer];
  ASSIGN_OR_RETURN(w.weight_ih, uniform({rows, width}));
  ASSIGN_OR_RETURN(w.weight_hh, uniform({rows, options_.hidden_size}));
  if (options_.bias) {
    ASSIGN_OR_RETURN(w.bias_ih, uniform({rows}));
    ASSIGN_OR_RETURN(w.bias_hh, uniform({rows}));
  }
  RegisterParameter(absl::StrCat("weight_ih_l", layer), &w.weight_ih);
  RegisterParameter(absl::StrCat("weight_hh_l", layer), &w.weight_hh);
  RegisterParameter(absl::StrCat("bias_ih_l", layer), &w.bias_ih);
  RegisterParameter(absl::StrCat("bias_hh_l", layer), &w.bias_hh);
  return absl::OkStatus();
}

absl::Status LSTM::CheckInputs(const Tensor& x, const LSTMState& state) const {
  const std::string layer = absl::StrCat("LSTM(", options_.input_size, ", ",
                                         options_.hidden_size, ")");
  const int time = options_.batch_first ? 1 : 0;
  if (!x.defined() || x.rank() != 3 || x.dim(2) != options_.input_size ||
      x.dim(time) == 0) {
    return internal::WrongInput(
        layer, "input",
        absl::StrCat(options_.batch_first ? "[n, time, " : "[time, n, ",
                     options_.input_size, "] with at least one step"),
        x);
  }
  const tensor::Shape expected = {options_.num_layers, x.dim(1 - time),
                                  options_.hidden_size};
  const std::pair<const char*, const Tensor*> states[] = {
      {"hidden state", &state.hidden}, {"cell state", &state.cell}};
  for (const auto& [role, part] : states) {
    if (!part->defined() || part->shape() == expected) continue;
    return internal::WrongInput(layer, role, expected.ToString(), *part);
  }
  return absl::OkStatus();
}

absl::StatusOr<LSTM::Cell> LSTM::FirstCell(const Tensor& x,
                                           const LSTMState& state,
                                           int64_t layer) const {
  const tensor::Shape shape = {x.dim(1), options_.hidden_size};
  const tensor::TensorOptions like{x.dtype(), x.device()};
  Cell cell;
  if (state.hidden.defined()) {
    ASSIGN_OR_RETURN(cell.hidden, autograd::Select(state.hidden, 0, layer));
  } else {
    cell.hidden = Tensor::Zeros(shape, like);
  }
  if (state.cell.defined()) {
    ASSIGN_OR_RETURN(cell.cell, autograd::Select(state.cell, 0, layer));
  } else {
    cell.cell = Tensor::Zeros(shape, like);
  }
  return cell;
}

absl::StatusOr<Tensor> LSTM::RunLayer(const Tensor& x, const Weights& weights,
                                      Cell& cell) const {
  // Contribution of the inputs, computed for all steps in one product.
  ASSIGN_OR_RETURN(const Tensor inputs,
                   autograd::Linear(x, weights.weight_ih, weights.bias_ih));
  const int64_t h = options_.hidden_size;
  const std::vector<int64_t> gate_sizes(4, h);
  std::vector<Tensor> outputs;
  for (int64_t step = 0; step < x.dim(0); ++step) {
    ASSIGN_OR_RETURN(const Tensor input, autograd::Select(inputs, 0, step));
    ASSIGN_OR_RETURN(
        const Tensor recurrent,
        autograd::Linear(cell.hidden, weights.weight_hh, weights.bias_hh));
    ASSIGN_OR_RETURN(const Tensor sum, autograd::Add(input, recurrent));
    ASSIGN_OR_RETURN(const std::vector<Tensor> gates,
                     autograd::Split(sum, gate_sizes, 1));
    ASSIGN_OR_RETURN(const Tensor i, autograd::Sigmoid(gates[0]));
    ASSIGN_OR_RETURN(const Tensor f, autograd::Sigmoid(gates[1]));
    ASSIGN_OR_RETURN(const Tensor g, autograd::Tanh(gates[2]));
    ASSIGN_OR_RETURN(const Tensor o, autograd::Sigmoid(gates[3]));
    ASSIGN_OR_RETURN(const Tensor kept, autograd::Mul(f, cell.cell));
    ASSIGN_OR_RETURN(const Tensor added, autograd::Mul(i, g));
    ASSIGN_OR_RETURN(cell.cell, autograd::Add(kept, added));
    ASSIGN_OR_RETURN(const Tensor squashed, autograd::Tanh(cell.cell));
    ASSIGN_OR_RETURN(cell.hidden, autograd::Mul(o, squashed));
    outputs.push_back(cell.hidden);
  }
  return autograd::Stack(outputs, 0);
}

absl::StatusOr<LSTM::Result> LSTM::Forward(const Tensor& x,
                                           const LSTMState& state) const {
  RETURN_IF_ERROR(CheckInputs(x, state));
  Tensor sequence = x;
  if (options_.batch_first) {
    ASSIGN_OR_RETURN(sequence, autograd::Transpose(x, 0, 1));
  }
  std::vector<Tensor> hidden;
  std::vector<Tensor> cells;
  for (int64_t layer = 0; layer < options_.num_layers; ++layer) {
    if (layer > 0) {
      ASSIGN_OR_RETURN(sequence, dropout_->Forward(sequence));
    }
    ASSIGN_OR_RETURN(Cell cell, FirstCell(sequence, state, layer));
    ASSIGN_OR_RETURN(sequence, RunLayer(sequence, layers_[layer], cell));
    hidden.push_back(cell.hidden);
    cells.push_back(cell.cell);
  }
  Result result;
  if (options_.batch_first) {
    ASSIGN_OR_RETURN(sequence, autograd::Transpose(sequence, 0, 1));
  }
  result.output = std::move(sequence);
  ASSIGN_OR_RETURN(result.state.hidden, autograd::Stack(hidden, 0));
  ASSIGN_OR_RETURN(result.state.cell, autograd::Stack(cells, 0));
  return result;
}

}  // namespace hawser::nn

#ifndef HAWSER_NN_MODULE_H_
#define HAWSER_NN_MODULE_H_

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensor/device.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::nn {

// Tensors and their names, in a significant order.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// A part of a model, with parameters, buffers (state that is not trained) and
// submodules. Derived classes register these under the names that PyTorch uses,
// so that state dicts are interchangeable.
//
//   class Classifier : public Module {
//    public:
//     static absl::StatusOr<std::unique_ptr<Classifier>> Create(
//         tensor::Generator& generator) {
//       auto model = std::unique_ptr<Classifier>(new Classifier);
//       ASSIGN_OR_RETURN(auto fc, Linear::Create({.in_features = 784,
//                                                 .out_features = 10},
//                                                generator));
//       model->fc_ = model->RegisterModule("fc", std::move(fc));
//       return model;
//     }
//     absl::StatusOr<Tensor> Forward(const Tensor& x) const {
//       return fc_->Forward(x);
//     }
//    private:
//     Linear* fc_;
//   };
//
// Forward methods are const. Several threads may run one module at the same
// time if none changes it or its parameters.
class Module {
 public:
  Module() = default;
  virtual ~Module() = default;

  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // Handles to the parameters of this module, then of its submodules, in the
  // order of registration: "weight", "bias", "layer1.weight", ...
  NamedTensors named_parameters() const;
  NamedTensors named_buffers() const;
  // The parameters without their names, for an optimizer.
  std::vector<Tensor> parameters() const;

  // Set the mode of this module and its submodules; initially training. Dropout
  // has no effect in evaluation mode.
  void Train(bool training = true);
  void Eval() { Train(false); }
  bool is_training() const { return training_; }

  // Drops the gradients of all parameters.
  void ZeroGrad();

  // Converts floating-point parameters and buffers, or moves all of them. They
  // become new tensors without gradients, so create optimizers afterwards.
  absl::Status To(tensor::DType dtype);
  absl::Status To(tensor::Device device);

  // Handles to the parameters, then to the buffers, without copies.
  NamedTensors StateDict() const;

  // Copies values to parameters and buffers. Converts between floating-point
  // dtypes.
  //
  // kInvalidArgument: names are missing, unexpected or given twice, or shapes
  // or dtypes do not match. The message lists all of them; nothing was changed.
  absl::Status LoadStateDict(const NamedTensors& state);

 protected:
  // `tensor` must be a member of the derived class. Conversions of the module
  // update it. Undefined tensors are not registered. Names must be unique and
  // must not contain dots; this is checked.
  void RegisterParameter(std::string name, Tensor* tensor);
  void RegisterBuffer(std::string name, Tensor* tensor);

  // Takes ownership of a submodule. The pointer is valid as long as this
  // module.
  template <class M>
  M* RegisterModule(std::string name, std::unique_ptr<M> module) {
    M* const raw = module.get();
    AddModule(std::move(name), std::move(module));
    return raw;
  }

 private:
  using TensorMap = absl::FunctionRef<absl::StatusOr<Tensor>(const Tensor&)>;

  void AddModule(std::string name, std::unique_ptr<Module> module);
  void CheckName(std::string_view name) const;
  void Collect(std::string_view prefix, bool parameters,
               NamedTensors& result) const;
  absl::Status Replace(TensorMap map);

  std::vector<std::pair<std::string, Tensor*>> parameters_;
  std::vector<std::pair<std::string, Tensor*>> buffers_;
  std::vector<std::pair<std::string, std::unique_ptr<Module>>> modules_;
  bool training_ = true;
};

// A module that maps one tensor to one tensor.
class Layer : public Module {
 public:
  // kInvalidArgument, naming the layer and both shapes, for an input of wrong
  // shape; otherwise the errors of the operations in tensor/ops.
  virtual absl::StatusOr<Tensor> Forward(const Tensor& x) const = 0;
};

}  // namespace hawser::nn

#endif  // HAWSER_NN_MODULE_H_

// Base class of the autograd metadata of a tensor.

#ifndef HAWSER_TENSOR_AUTOGRAD_META_H_
#define HAWSER_TENSOR_AUTOGRAD_META_H_

namespace hawser::tensor {

// Opaque to tensor/, where a tensor that has one requires a gradient. autograd/
// derives its own class from it.
class AutogradMeta {
 public:
  virtual ~AutogradMeta() = default;
};

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_AUTOGRAD_META_H_

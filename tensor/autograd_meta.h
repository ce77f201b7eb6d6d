// The slot in which a tensor carries what autograd knows of it.

#ifndef HAWSER_TENSOR_AUTOGRAD_META_H_
#define HAWSER_TENSOR_AUTOGRAD_META_H_

namespace hawser::tensor {

// Opaque to tensor/. autograd/ derives its own class from this one.
class AutogradMeta {
 public:
  virtual ~AutogradMeta() = default;
};

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_AUTOGRAD_META_H_

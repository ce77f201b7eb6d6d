// The kernels of the CPU: oneDNN and Eigen for products, Highway for vector
// loops. See tensor/backend/backend.h for their semantics.
//
// Each group of kernels has a source file of its name. Stateless except for
// thread-local caches.
#ifndef HAWSER_TENSOR_BACKEND_CPU_CPU_BACKEND_H_
#define HAWSER_TENSOR_BACKEND_CPU_CPU_BACKEND_H_

#include <cstdint>

#include "absl/status/status.h"
#include "tensor/backend/backend.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/tensor.h"

namespace hawser::tensor::cpu {

class CpuBackend final : public Backend {
 public:
  // elementwise.cc
  absl::Status Fill(double value, Tensor& out) override;
  absl::Status Unary(UnaryOp op, const Tensor& in, Tensor& out) override;
  absl::Status Binary(BinaryOp op, const Tensor& a, const Tensor& b,
                      Tensor& out) override;
  absl::Status BinaryScalar(BinaryOp op, const Tensor& a, double b,
                            Tensor& out) override;
  absl::Status AddScaled(const Tensor& a, const Tensor& b, double alpha,
                         Tensor& out) override;
  absl::Status Compare(CompareOp op, const Tensor& a, const Tensor& b,
                       Tensor& out) override;
  absl::Status Where(const Tensor& condition, const Tensor& a, const Tensor& b,
                     Tensor& out) override;

  // reduce.cc
  absl::Status Reduce(ReduceOp op, const Tensor& in, Tensor& out) override;
  absl::Status Norm(const Tensor& in, double p, Tensor& out) override;
  absl::Status ArgMax(const Tensor& in, int dim, Tensor& out) override;

  // matmul.cc
  absl::Status MatMul(const Tensor& a, const Tensor& b, Tensor& out) override;
  absl::Status Linear(const Tensor& x, const Tensor& w, const Tensor& bias,
                      Activation activation, Tensor& out) override;
  absl::Status ReluBiasGrad(const Tensor& y, const Tensor& dy, Tensor& dz,
                            Tensor& db) override;

  // conv2d.cc
  absl::Status Conv2d(const Tensor& x, const Tensor& w, const Tensor& bias,
                      const Conv2dOptions& options, Tensor& y) override;
  absl::Status Conv2dInputGrad(const Tensor& dy, const Tensor& w,
                               const Conv2dOptions& options,
                               Tensor& dx) override;
  absl::Status Conv2dWeightGrad(const Tensor& dy, const Tensor& x,
                                const Conv2dOptions& options,
                                Tensor& dw) override;

  // pool.cc
  absl::Status MaxPool2d(const Tensor& x, const Pool2dOptions& options,
                         Tensor& values, Tensor& indices) override;
  absl::Status MaxPool2dGrad(const Tensor& dy, const Tensor& indices,
                             Tensor& dx) override;
  absl::Status AvgPool2d(const Tensor& x, const Pool2dOptions& options,
                         Tensor& y) override;
  absl::Status AvgPool2dGrad(const Tensor& dy, const Pool2dOptions& options,
                             Tensor& dx) override;

  // softmax.cc
  absl::Status Softmax(SoftmaxKind kind, const Tensor& x, int dim,
                       Tensor& y) override;
  absl::Status SoftmaxGrad(SoftmaxKind kind, const Tensor& y, const Tensor& dy,
                           int dim, Tensor& dx) override;
  absl::Status SoftmaxCrossEntropy(const Tensor& logits, const Tensor& labels,
                                   Tensor& loss, Tensor& probs) override;
  absl::Status SoftmaxCrossEntropyGrad(const Tensor& probs,
                                       const Tensor& labels,
                                       const Tensor& dloss,
                                       Tensor& dlogits) override;

  // layer_norm.cc
  absl::Status LayerNorm(const Tensor& x, const Tensor& weight,
                         const Tensor& bias, double eps, Tensor& y,
                         Tensor& mean, Tensor& rstd) override;
  absl::Status LayerNormGrad(const Tensor& dy, const Tensor& x,
                             const Tensor& mean, const Tensor& rstd,
                             const Tensor& weight, Tensor& dx, Tensor& dw,
                             Tensor& db) override;

  // gather.cc
  absl::Status IndexSelect(const Tensor& in, int dim, const Tensor& index,
                           Tensor& out) override;
  absl::Status IndexAdd(int dim, const Tensor& index, const Tensor& src,
                        Tensor& out) override;
  absl::Status Gather(const Tensor& in, int dim, const Tensor& index,
                      Tensor& out) override;
  absl::Status ScatterAdd(int dim, const Tensor& index, const Tensor& src,
                          Tensor& out) override;

  // embedding_bag.cc
  absl::Status EmbeddingBag(BagMode mode, const Tensor& weight,
                            const Tensor& ids, const Tensor& offsets,
                            Tensor& out, Tensor& max_ids) override;
  absl::Status EmbeddingBagGrad(BagMode mode, const Tensor& dout,
                                const Tensor& ids, const Tensor& offsets,
                                const Tensor& max_ids,
                                Tensor& dweight) override;

  // random.cc
  absl::Status Random(RandomKind kind, uint64_t seed, uint64_t offset, double a,
                      double b, Tensor& out) override;
};

}  // namespace hawser::tensor::cpu

#endif  // HAWSER_TENSOR_BACKEND_CPU_CPU_BACKEND_H_

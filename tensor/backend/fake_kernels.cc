#include "tensor/backend/fake_kernels.h"

#include <memory>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/check.h"
#include "async/status_macros.h"
#include "tensor/backend/backend.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/device.h"
#include "tensor/memory/storage.h"
#include "tensor/tensor.h"

namespace hawser::tensor {
namespace {

// A tensor of the CPU on the same memory.
Tensor ToHost(const Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  // Keeps the memory.
  const StoragePtr& storage = tensor.storage();
  absl::StatusOr<Tensor> host =
      Tensor::FromStorage(Storage::Wrap(storage->data(), storage->bytes(), kCpu,
                                        [tensor] { (void)tensor; }),
                          tensor.storage_offset(), tensor.shape(),
                          tensor.strides(), tensor.dtype());
  HAWSER_CHECK(host.ok()) << host.status();
  return *std::move(host);
}
template <class T>
T ToHost(const T& other) {
  return other;
}

class FakeDeviceKernels final : public Backend {
 public:
  absl::Status Fill(double value, Tensor& out) override {
    return OnCpu(&Backend::Fill, value, out);
  }
  absl::Status Unary(UnaryOp op, const Tensor& in, Tensor& out) override {
    return OnCpu(&Backend::Unary, op, in, out);
  }
  absl::Status Binary(BinaryOp op, const Tensor& a, const Tensor& b,
                      Tensor& out) override {
    return OnCpu(&Backend::Binary, op, a, b, out);
  }
  absl::Status BinaryScalar(BinaryOp op, const Tensor& a, double b,
                            Tensor& out) override {
    return OnCpu(&Backend::BinaryScalar, op, a, b, out);
  }
  absl::Status AddScaled(const Tensor& a, const Tensor& b, double alpha,
                         Tensor& out) override {
    return OnCpu(&Backend::AddScaled, a, b, alpha, out);
  }
  absl::Status Compare(CompareOp op, const Tensor& a, const Tensor& b,
                       Tensor& out) override {
    return OnCpu(&Backend::Compare, op, a, b, out);
  }
  absl::Status Where(const Tensor& condition, const Tensor& a, const Tensor& b,
                     Tensor& out) override {
    return OnCpu(&Backend::Where, condition, a, b, out);
  }
  absl::Status Reduce(ReduceOp op, const Tensor& in, Tensor& out) override {
    return OnCpu(&Backend::Reduce, op, in, out);
  }
  absl::Status Norm(const Tensor& in, double p, Tensor& out) override {
    return OnCpu(&Backend::Norm, in, p, out);
  }
  absl::Status ArgMax(const Tensor& in, int dim, Tensor& out) override {
    return OnCpu(&Backend::ArgMax, in, dim, out);
  }
  absl::Status MatMul(const Tensor& a, const Tensor& b, Tensor& out) override {
    return OnCpu(&Backend::MatMul, a, b, out);
  }
  absl::Status Linear(const Tensor& x, const Tensor& w, const Tensor& bias,
                      Activation activation, Tensor& out) override {
    return OnCpu(&Backend::Linear, x, w, bias, activation, out);
  }
  absl::Status ReluBiasGrad(const Tensor& y, const Tensor& dy, Tensor& dz,
                            Tensor& db) override {
    return OnCpu(&Backend::ReluBiasGrad, y, dy, dz, db);
  }
  absl::Status Conv2d(const Tensor& x, const Tensor& w, const Tensor& bias,
                      const Conv2dOptions& options, Tensor& y) override {
    return OnCpu(&Backend::Conv2d, x, w, bias, options, y);
  }
  absl::Status Conv2dInputGrad(const Tensor& dy, const Tensor& w,
                               const Conv2dOptions& options,
                               Tensor& dx) override {
    return OnCpu(&Backend::Conv2dInputGrad, dy, w, options, dx);
  }
  absl::Status Conv2dWeightGrad(const Tensor& dy, const Tensor& x,
                                const Conv2dOptions& options,
                                Tensor& dw) override {
    return OnCpu(&Backend::Conv2dWeightGrad, dy, x, options, dw);
  }
  absl::Status MaxPool2d(const Tensor& x, const Pool2dOptions& options,
                         Tensor& values, Tensor& indices) override {
    return OnCpu(&Backend::MaxPool2d, x, options, values, indices);
  }
  absl::Status MaxPool2dGrad(const Tensor& dy, const Tensor& indices,
                             Tensor& dx) override {
    return OnCpu(&Backend::MaxPool2dGrad, dy, indices, dx);
  }
  absl::Status AvgPool2d(const Tensor& x, const Pool2dOptions& options,
                         Tensor& y) override {
    return OnCpu(&Backend::AvgPool2d, x, options, y);
  }
  absl::Status AvgPool2dGrad(const Tensor& dy, const Pool2dOptions& options,
                             Tensor& dx) override {
    return OnCpu(&Backend::AvgPool2dGrad, dy, options, dx);
  }
  absl::Status Softmax(SoftmaxKind kind, const Tensor& x, int dim,
                       Tensor& y) override {
    return OnCpu(&Backend::Softmax, kind, x, dim, y);
  }
  absl::Status SoftmaxGrad(SoftmaxKind kind, const Tensor& y, const Tensor& dy,
                           int dim, Tensor& dx) override {
    return OnCpu(&Backend::SoftmaxGrad, kind, y, dy, dim, dx);
  }
  absl::Status SoftmaxCrossEntropy(const Tensor& logits, const Tensor& labels,
                                   Tensor& loss, Tensor& probs) override {
    return OnCpu(&Backend::SoftmaxCrossEntropy, logits, labels, loss, probs);
  }
  absl::Status SoftmaxCrossEntropyGrad(const Tensor& probs,
                                       const Tensor& labels,
                                       const Tensor& dloss,
                                       Tensor& dlogits) override {
    return OnCpu(&Backend::SoftmaxCrossEntropyGrad, probs, labels, dloss,
                 dlogits);
  }
  absl::Status LayerNorm(const Tensor& x, const Tensor& weight,
                         const Tensor& bias, double eps, Tensor& y,
                         Tensor& mean, Tensor& rstd) override {
    return OnCpu(&Backend::LayerNorm, x, weight, bias, eps, y, mean, rstd);
  }
  absl::Status LayerNormGrad(const Tensor& dy, const Tensor& x,
                             const Tensor& mean, const Tensor& rstd,
                             const Tensor& weight, Tensor& dx, Tensor& dw,
                             Tensor& db) override {
    return OnCpu(&Backend::LayerNormGrad, dy, x, mean, rstd, weight, dx, dw,
                 db);
  }
  absl::Status IndexSelect(const Tensor& in, int dim, const Tensor& index,
                           Tensor& out) override {
    return OnCpu(&Backend::IndexSelect, in, dim, index, out);
  }
  absl::Status IndexAdd(int dim, const Tensor& index, const Tensor& src,
                        Tensor& out) override {
    return OnCpu(&Backend::IndexAdd, dim, index, src, out);
  }
  absl::Status Gather(const Tensor& in, int dim, const Tensor& index,
                      Tensor& out) override {
    return OnCpu(&Backend::Gather, in, dim, index, out);
  }
  absl::Status ScatterAdd(int dim, const Tensor& index, const Tensor& src,
                          Tensor& out) override {
    return OnCpu(&Backend::ScatterAdd, dim, index, src, out);
  }
  absl::Status EmbeddingBag(BagMode mode, const Tensor& weight,
                            const Tensor& ids, const Tensor& offsets,
                            Tensor& out, Tensor& max_ids) override {
    return OnCpu(&Backend::EmbeddingBag, mode, weight, ids, offsets, out,
                 max_ids);
  }
  absl::Status EmbeddingBagGrad(BagMode mode, const Tensor& dout,
                                const Tensor& ids, const Tensor& offsets,
                                const Tensor& max_ids,
                                Tensor& dweight) override {
    return OnCpu(&Backend::EmbeddingBagGrad, mode, dout, ids, offsets, max_ids,
                 dweight);
  }
  absl::Status Random(RandomKind kind, uint64_t seed, uint64_t offset, double a,
                      double b, Tensor& out) override {
    return OnCpu(&Backend::Random, kind, seed, offset, a, b, out);
  }

 private:
  template <class... Formal, class... Actual>
  static absl::Status OnCpu(absl::Status (Backend::*kernel)(Formal...),
                            const Actual&... operands) {
    ASSIGN_OR_RETURN(Backend* const cpu, BackendFor(kCpu));
    auto hosts = std::make_tuple(ToHost(operands)...);
    return std::apply([&](auto&... each) { return (cpu->*kernel)(each...); },
                      hosts);
  }
};

}  // namespace

void RegisterFakeKernels() {
  static FakeDeviceKernels kernels;
  RegisterBackend(DeviceType::kCuda, &kernels);
}

}  // namespace hawser::tensor

// Interface of the kernels of one kind of device, as used by tensor/ops/.
//
// The functions of tensor/ops/ check shapes, dtypes and devices, allocate the
// outputs and call one kernel; a kernel checks only what the caller cannot,
// such as the values of ids. Unless a comment says otherwise:
//   - all tensors of a call are on one device of this kind;
//   - inputs may have any strides (transposed, sliced, broadcast by stride 0);
//   - outputs are contiguous, allocated by the caller, and do not share memory
//     with an input; an elementwise kernel may write to an input of the same
//     shape and strides;
//   - any size may be zero and any rank that the description allows may be 0.
//
// A backend is thread-safe. On a CPU a kernel has finished when it returns; on
// a GPU it is enqueued on the calling thread's current stream.
//
// Status of every kernel:
//   kUnimplemented       this device does not support that dtype.
//   kOutOfRange          an id or label is out of range; the message names it
//                        and its position. Outputs are unspecified then.
//   kResourceExhausted   out of memory for scratch space.
#ifndef HAWSER_TENSOR_BACKEND_BACKEND_H_
#define HAWSER_TENSOR_BACKEND_BACKEND_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensor/backend/kernel_types.h"
#include "tensor/device.h"
#include "tensor/tensor.h"

namespace hawser::tensor {

class Backend {
 public:
  virtual ~Backend() = default;

  // --- Elementwise. `out` may be strided here.
  virtual absl::Status Fill(double value, Tensor& out) = 0;
  virtual absl::Status Unary(UnaryOp op, const Tensor& in, Tensor& out) = 0;
  // `a` and `b` broadcast to `out`; one dtype.
  virtual absl::Status Binary(BinaryOp op, const Tensor& a, const Tensor& b,
                              Tensor& out) = 0;
  virtual absl::Status BinaryScalar(BinaryOp op, const Tensor& a, double b,
                                    Tensor& out) = 0;
  // out = a + alpha * b; `a` and `b` broadcast to `out`, which may be `a`.
  virtual absl::Status AddScaled(const Tensor& a, const Tensor& b, double alpha,
                                 Tensor& out) = 0;
  // `out` is bool.
  virtual absl::Status Compare(CompareOp op, const Tensor& a, const Tensor& b,
                               Tensor& out) = 0;
  // `condition` is bool; all broadcast to `out`.
  virtual absl::Status Where(const Tensor& condition, const Tensor& a,
                             const Tensor& b, Tensor& out) = 0;

  // --- Reductions. `out` has the rank of `in`, with 1 where it is reduced.
  virtual absl::Status Reduce(ReduceOp op, const Tensor& in, Tensor& out) = 0;
  // (sum |x|^p)^(1/p) over all elements; p may be infinite. `out` has rank 0.
  virtual absl::Status Norm(const Tensor& in, double p, Tensor& out) = 0;
  // `out` is i64; the first of equal elements, and the first NaN if any.
  virtual absl::Status ArgMax(const Tensor& in, int dim, Tensor& out) = 0;

  // --- Products; floating point, sums of 16-bit types in f32.
  // a [..., m, k], b [..., k, n], out [..., m, n], of one rank >= 2; the batch
  // dims of `a` and `b` broadcast.
  virtual absl::Status MatMul(const Tensor& a, const Tensor& b,
                              Tensor& out) = 0;
  // out[m, n] = activation(x[m, k] * w[n, k]^T + bias[n] if defined).
  virtual absl::Status Linear(const Tensor& x, const Tensor& w,
                              const Tensor& bias, Activation activation,
                              Tensor& out) = 0;
  // Gradient of y = relu(z), z = x w^T + bias: dz = dy, but 0 where y <= 0; and
  // db = sum of dz over rows, if `db` is defined. y, dy, dz [m, n], db [n].
  virtual absl::Status ReluBiasGrad(const Tensor& y, const Tensor& dy,
                                    Tensor& dz, Tensor& db) = 0;

  // --- Convolution: x [n, c, h, w], w [o, c / groups, kh, kw], y [n, o, ., .].
  virtual absl::Status Conv2d(const Tensor& x, const Tensor& w,
                              const Tensor& bias, const Conv2dOptions& options,
                              Tensor& y) = 0;
  virtual absl::Status Conv2dInputGrad(const Tensor& dy, const Tensor& w,
                                       const Conv2dOptions& options,
                                       Tensor& dx) = 0;
  virtual absl::Status Conv2dWeightGrad(const Tensor& dy, const Tensor& x,
                                        const Conv2dOptions& options,
                                        Tensor& dw) = 0;

  // --- Pooling. `indices` i64: y * width + x of each maximum in its plane.
  virtual absl::Status MaxPool2d(const Tensor& x, const Pool2dOptions& options,
                                 Tensor& values, Tensor& indices) = 0;
  virtual absl::Status MaxPool2dGrad(const Tensor& dy, const Tensor& indices,
                                     Tensor& dx) = 0;
  virtual absl::Status AvgPool2d(const Tensor& x, const Pool2dOptions& options,
                                 Tensor& y) = 0;
  virtual absl::Status AvgPool2dGrad(const Tensor& dy,
                                     const Pool2dOptions& options,
                                     Tensor& dx) = 0;

  // --- Softmax over `dim`, and its gradient from the output `y`.
  virtual absl::Status Softmax(SoftmaxKind kind, const Tensor& x, int dim,
                               Tensor& y) = 0;
  virtual absl::Status SoftmaxGrad(SoftmaxKind kind, const Tensor& y,
                                   const Tensor& dy, int dim, Tensor& dx) = 0;
  // logits, probs [n, c]; labels i64 [n]; loss rank 0: the mean over n.
  virtual absl::Status SoftmaxCrossEntropy(const Tensor& logits,
                                           const Tensor& labels, Tensor& loss,
                                           Tensor& probs) = 0;
  // dlogits = (probs - onehot(labels)) * dloss / n; dloss has one element.
  virtual absl::Status SoftmaxCrossEntropyGrad(const Tensor& probs,
                                               const Tensor& labels,
                                               const Tensor& dloss,
                                               Tensor& dlogits) = 0;

  // --- Layer norm: x, y, dy, dx [rows, cols]; weight, bias, dw, db [cols] or
  // undefined; mean, rstd [rows], in f32 for 16-bit x.
  virtual absl::Status LayerNorm(const Tensor& x, const Tensor& weight,
                                 const Tensor& bias, double eps, Tensor& y,
                                 Tensor& mean, Tensor& rstd) = 0;
  virtual absl::Status LayerNormGrad(const Tensor& dy, const Tensor& x,
                                     const Tensor& mean, const Tensor& rstd,
                                     const Tensor& weight, Tensor& dx,
                                     Tensor& dw, Tensor& db) = 0;

  // --- Rows of tables. ids are i64 or i32; contributions of equal ids add up.
  // The Add kernels add to `out`, whose dtype does not have 16 bits. out[...,
  // j, ...] = in[..., index[j], ...] along `dim`; index [n].
  virtual absl::Status IndexSelect(const Tensor& in, int dim,
                                   const Tensor& index, Tensor& out) = 0;
  virtual absl::Status IndexAdd(int dim, const Tensor& index, const Tensor& src,
                                Tensor& out) = 0;
  // As PyTorch's gather and scatter_add: index has the shape of the output
  // (Gather) or of a corner of `src` (ScatterAdd).
  virtual absl::Status Gather(const Tensor& in, int dim, const Tensor& index,
                              Tensor& out) = 0;
  virtual absl::Status ScatterAdd(int dim, const Tensor& index,
                                  const Tensor& src, Tensor& out) = 0;
  // weight [rows, d], ids [n], offsets [bags], out [bags, d]; with kMax
  // `max_ids` i64 [bags, d] receives the id of each maximum, -1 for an empty
  // bag.
  virtual absl::Status EmbeddingBag(BagMode mode, const Tensor& weight,
                                    const Tensor& ids, const Tensor& offsets,
                                    Tensor& out, Tensor& max_ids) = 0;
  // Adds to dweight [rows, d], f32 or f64.
  virtual absl::Status EmbeddingBagGrad(BagMode mode, const Tensor& dout,
                                        const Tensor& ids,
                                        const Tensor& offsets,
                                        const Tensor& max_ids,
                                        Tensor& dweight) = 0;

  // --- Random numbers: element i depends only on (seed, offset + i).
  virtual absl::Status Random(RandomKind kind, uint64_t seed, uint64_t offset,
                              double a, double b, Tensor& out) = 0;
};

// Registers `backend` for devices of `type`; it must live until the process
// exits. The backend's library calls this when it is loaded.
void RegisterBackend(DeviceType type, Backend* backend);

// Returns the backend of `device`. kFailedPrecondition, naming the device, if
// its backend is not linked in.
absl::StatusOr<Backend*> BackendFor(Device device);

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_BACKEND_BACKEND_H_

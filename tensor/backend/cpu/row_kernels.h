// Softmax and layer norm of one dense row, vectorised for floats and scalar for
// doubles. C is float or double. Outputs may be the inputs.
#ifndef HAWSER_TENSOR_BACKEND_CPU_ROW_KERNELS_H_
#define HAWSER_TENSOR_BACKEND_CPU_ROW_KERNELS_H_

#include <cstdint>

#include "tensor/backend/kernel_types.h"

namespace hawser::tensor::cpu {

void SoftmaxRow(SoftmaxKind kind, const float* x, int64_t n, float* y);
void SoftmaxRow(SoftmaxKind kind, const double* x, int64_t n, double* y);

// Gradient from the output y and its gradient.
void SoftmaxGradRow(SoftmaxKind kind, const float* y, const float* dy,
                    int64_t n, float* dx);
void SoftmaxGradRow(SoftmaxKind kind, const double* y, const double* dy,
                    int64_t n, double* dx);

// probs = softmax(logits); returns -log(probs[label]).
double CrossEntropyRow(const float* logits, int64_t n, int64_t label,
                       float* probs);
double CrossEntropyRow(const double* logits, int64_t n, int64_t label,
                       double* probs);

template <class C>
struct Moments {
  C mean;
  C rstd;  // 1 / sqrt(variance + eps)
};

// y = (x - mean) * rstd * weight + bias; weight and bias may be null.
Moments<float> LayerNormRow(const float* x, int64_t n, const float* weight,
                            const float* bias, double eps, float* y);
Moments<double> LayerNormRow(const double* x, int64_t n, const double* weight,
                             const double* bias, double eps, double* y);

// Gradient of one row; adds the gradients of weight and bias to dw and db.
// `weight` may be null.
void LayerNormGradRow(const float* dy, const float* x, int64_t n,
                      Moments<float> moments, const float* weight, float* dx,
                      float* dw, float* db);
void LayerNormGradRow(const double* dy, const double* x, int64_t n,
                      Moments<double> moments, const double* weight, double* dx,
                      double* dw, double* db);

}  // namespace hawser::tensor::cpu

#endif  // HAWSER_TENSOR_BACKEND_CPU_ROW_KERNELS_H_

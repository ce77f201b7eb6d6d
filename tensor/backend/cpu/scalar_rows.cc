// The kernels of tensor/backend/cpu/row_kernels.h for doubles.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tensor/backend/cpu/row_kernels.h"

namespace hawser::tensor::cpu {
namespace {

double MaxOf(const double* x, int64_t n) {
  double best = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < n; ++i) best = std::max(best, x[i]);
  return best;
}

double SumExp(const double* x, double shift, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - shift);
  return sum;
}

double WeightAt(const double* weight, int64_t i) {
  return weight != nullptr ? weight[i] : 1;
}

}  // namespace

void SoftmaxRow(SoftmaxKind kind, const double* x, int64_t n, double* y) {
  const double max = MaxOf(x, n);
  const double sum = SumExp(x, max, n);
  const double log_sum = std::log(sum);
  for (int64_t i = 0; i < n; ++i) {
    const double shifted = x[i] - max;
    y[i] = kind == SoftmaxKind::kSoftmax ? std::exp(shifted) / sum
                                         : shifted - log_sum;
  }
}

void SoftmaxGradRow(SoftmaxKind kind, const double* y, const double* dy,
                    int64_t n, double* dx) {
  const bool log = kind == SoftmaxKind::kLogSoftmax;
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += log ? dy[i] : y[i] * dy[i];
  for (int64_t i = 0; i < n; ++i) {
    dx[i] = log ? dy[i] - std::exp(y[i]) * sum : y[i] * (dy[i] - sum);
  }
}

double CrossEntropyRow(const double* logits, int64_t n, int64_t label,
                       double* probs) {
  const double max = MaxOf(logits, n);
  const double sum = SumExp(logits, max, n);
  const double loss = std::log(sum) - (logits[label] - max);
  for (int64_t i = 0; i < n; ++i) probs[i] = std::exp(logits[i] - max) / sum;
  return loss;
}

Moments<double> LayerNormRow(const double* x, int64_t n, const double* weight,
                             const double* bias, double eps, double* y) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  const double mean = sum / static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
  const double rstd = 1 / std::sqrt(squares / static_cast<double>(n) + eps);
  for (int64_t i = 0; i < n; ++i) {
    y[i] = (x[i] - mean) * rstd * WeightAt(weight, i) +
           (bias != nullptr ? bias[i] : 0);
  }
  return {mean, rstd};
}

// The formulas are those of vector_rows.cc.
void LayerNormGradRow(const double* dy, const double* x, int64_t n,
                      Moments<double> moments, const double* weight, double* dx,
                      double* dw, double* db) {
  double sum_g = 0, sum_gh = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double h = (x[i] - moments.mean) * moments.rstd;
    const double g = dy[i] * WeightAt(weight, i);
    sum_g += g;
    sum_gh += g * h;
    dw[i] += dy[i] * h;
    db[i] += dy[i];
  }
  const double count = static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i) {
    const double h = (x[i] - moments.mean) * moments.rstd;
    const double g = dy[i] * WeightAt(weight, i);
    dx[i] = moments.rstd * (g - sum_g / count - h * sum_gh / count);
  }
}

}  // namespace hawser::tensor::cpu

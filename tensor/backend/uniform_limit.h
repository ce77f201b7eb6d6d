// The upper end of uniform draws in a dtype.
#ifndef HAWSER_TENSOR_BACKEND_UNIFORM_LIMIT_H_
#define HAWSER_TENSOR_BACKEND_UNIFORM_LIMIT_H_

#include "tensor/dtype.h"

namespace hawser::tensor {

// The largest number of `dtype`, a floating-point one, that a draw from
// [low, high) may give: the one before `high` as `dtype` rounds it, but at
// least `low` as it does. A number just below `high` may be rounded to `high`,
// so that kernels cut their draws off here.
double UniformLimit(DType dtype, double low, double high);

}  // namespace hawser::tensor

#endif  // HAWSER_TENSOR_BACKEND_UNIFORM_LIMIT_H_

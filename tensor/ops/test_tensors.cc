#include "tensor/ops/test_tensors.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::tensor {

std::vector<double> Values(const Tensor& t) {
  return t.To(DType::kF64)->ToVector<double>();
}

Tensor FromValues(const std::vector<double>& values, const Shape& shape,
                  DType dtype) {
  return *Tensor::FromVector(values, shape).To(dtype);
}

Tensor TestTensor(const Shape& shape, DType dtype, uint32_t seed, double low,
                  double high) {
  std::minstd_rand source(seed * 7919 + 17);
  std::vector<double> values(static_cast<size_t>(shape.num_elements()));
  for (double& value : values) {
    const double unit = static_cast<double>(source() - source.min()) /
                        static_cast<double>(source.max() - source.min());
    value = low + (high - low) * unit;
    if (!IsFloatingPoint(dtype)) value = std::round(value);
  }
  return FromValues(values, shape, dtype);
}

std::vector<Tensor> Layouts(const Tensor& t) {
  std::vector<Tensor> layouts = {t};
  const int rank = t.rank();
  if (rank == 0) return layouts;
  const TensorOptions options = {t.dtype(), t.device()};

  Shape reversed, doubled, longer;
  std::vector<int> order;
  for (int d = 0; d < rank; ++d) {
    reversed.Append(t.shape()[rank - 1 - d]);
    doubled.Append(2 * t.shape()[d]);
    longer.Append(t.shape()[d] + 1);
    order.push_back(rank - 1 - d);
  }
  Tensor transposed = *Tensor::Empty(reversed, options).Permute(order);
  Tensor strided = Tensor::Empty(doubled, options);
  Tensor shifted = Tensor::Empty(longer, options);
  for (int d = 0; d < rank; ++d) {
    strided = *strided.Slice(d, 0, doubled[d], 2);
    shifted = *shifted.Narrow(d, 1, t.shape()[d]);
  }
  for (Tensor* view : {&transposed, &strided, &shifted}) {
    EXPECT_TRUE(view->CopyFrom(t).ok());
    layouts.push_back(std::move(*view));
  }
  return layouts;
}

double Tolerance(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 2e-6;
    case DType::kF64:
      return 1e-12;
    case DType::kF16:
      return 2e-3;
    case DType::kBF16:
      return 1.6e-2;
    default:
      return 0;
  }
}

void ExpectTensor(const Tensor& t, const Shape& shape,
                  const std::vector<double>& expected, double tolerance) {
  ASSERT_TRUE(t.defined());
  ASSERT_EQ(t.shape(), shape);
  const std::vector<double> values = Values(t);
  ASSERT_EQ(values.size(), expected.size());
  if (tolerance == 0) tolerance = Tolerance(t.dtype());
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(expected[i])) {
      ASSERT_TRUE(std::isnan(values[i])) << "element " << i;
    } else if (std::isinf(expected[i])) {
      ASSERT_EQ(values[i], expected[i]) << "element " << i;
    } else {
      ASSERT_NEAR(values[i], expected[i],
                  tolerance * std::max(1.0, std::abs(expected[i])))
          << "element " << i << " of " << t;
    }
  }
}

int64_t PositionOf(const std::vector<int64_t>& index, const Shape& shape) {
  int64_t position = 0;
  const int skipped = static_cast<int>(index.size()) - shape.rank();
  for (int d = 0; d < shape.rank(); ++d) {
    const int64_t i = index[static_cast<size_t>(d + skipped)];
    position = position * shape[d] + (shape[d] == 1 ? 0 : i);
  }
  return position;
}

}  // namespace hawser::tensor

// Views, against index arithmetic written out.

#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/tensor.h"

namespace hawser::tensor {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
using Index = std::vector<int64_t>;

// All indices of `shape`, in row-major order.
std::vector<Index> IndicesOf(const Shape& shape) {
  std::vector<Index> indices;
  for (int64_t n = 0; n < shape.num_elements(); ++n) {
    Index index(shape.rank());
    int64_t rest = n;
    for (int i = shape.rank() - 1; i >= 0; --i) {
      index[i] = rest % shape[i];
      rest /= shape[i];
    }
    indices.push_back(std::move(index));
  }
  return indices;
}

int64_t At(const Tensor& tensor, const Index& index) {
  int64_t offset = tensor.storage_offset();
  for (size_t i = 0; i < index.size(); ++i) {
    offset += index[i] * tensor.strides()[static_cast<int>(i)];
  }
  return static_cast<const int64_t*>(tensor.storage()->data())[offset];
}

// Checks that `view` shares memory with `base` and that its element at `index`
// is that of `base` at `source(index)`.
void ExpectView(const absl::StatusOr<Tensor>& view, const Tensor& base,
                const Shape& shape, const std::function<Index(Index)>& source) {
  ASSERT_THAT(view, IsOk());
  EXPECT_EQ(view->storage(), base.storage());
  EXPECT_EQ(view->num_elements(), shape.num_elements());
  EXPECT_EQ(view->is_contiguous(), IsRowMajor(shape, view->strides()));
  ASSERT_EQ(view->shape(), shape);
  for (const Index& index : IndicesOf(shape)) {
    ASSERT_EQ(At(*view, index), At(base, source(index)));
  }
}

Tensor Iota(const Shape& shape) {
  return *Tensor::Arange(shape.num_elements(), {.dtype = DType::kI64})
              .Reshape(shape);
}

// A base that is itself no plain tensor: sliced and permuted.
Tensor StridedBase() {
  return *Iota({4, 5, 6}).Slice(2, 1, 6, 2)->Permute({2, 0, 1});  // [3, 4, 5]
}

TEST(TensorViewsTest, Transpose) {
  for (const Tensor& base : {Iota({3, 4, 5}), StridedBase()}) {
    ExpectView(base.Transpose(0, -1), base, {5, 4, 3}, [](Index i) {
      return Index{i[2], i[1], i[0]};
    });
    ExpectView(base.Transpose(1, 1), base, {3, 4, 5},
               [](Index i) { return i; });
  }
  EXPECT_THAT(Iota({2}).Transpose(0, 1), StatusIs(kInvalid));
  EXPECT_THAT(Iota({2, 3}).T()->shape(), (Shape{3, 2}));
  EXPECT_THAT(Iota({2}).T(), StatusIs(kInvalid, HasSubstr("i64[2]")));
}

TEST(TensorViewsTest, Permute) {
  for (const Tensor& base : {Iota({3, 4, 5}), StridedBase()}) {
    ExpectView(base.Permute({1, -1, 0}), base, {4, 5, 3}, [](Index i) {
      return Index{i[2], i[0], i[1]};
    });
  }
  const Tensor base = Iota({2, 3});
  EXPECT_THAT(base.Permute({0}), StatusIs(kInvalid));
  EXPECT_THAT(base.Permute({0, 0}), StatusIs(kInvalid, HasSubstr("[0, 0]")));
  EXPECT_THAT(base.Permute({0, 2}), StatusIs(kInvalid));
  EXPECT_THAT(Iota({}).Permute({}), IsOk());
}

// What Python's range(size)[start:end:step] selects.
std::vector<int64_t> PythonSlice(int64_t size, int64_t start, int64_t end,
                                 int64_t step) {
  if (start < 0) start = std::max<int64_t>(start + size, 0);
  if (end < 0) end += size;
  std::vector<int64_t> indices;
  for (int64_t i = start; i < std::min(end, size); i += step) {
    indices.push_back(i);
  }
  return indices;
}

TEST(TensorViewsTest, SliceIsThatOfPython) {
  const Tensor base = StridedBase();
  for (int64_t start = -7; start <= 7; ++start) {
    for (int64_t end = -7; end <= 7; ++end) {
      for (int64_t step = 1; step <= 6; ++step) {
        const auto rows = PythonSlice(5, start, end, step);
        ExpectView(base.Slice(2, start, end, step), base,
                   {3, 4, static_cast<int64_t>(rows.size())}, [&](Index i) {
                     return Index{i[0], i[1], rows[i[2]]};
                   });
      }
    }
  }
  EXPECT_THAT(base.Slice(0, 0, 1, 0), StatusIs(kInvalid, HasSubstr("step 0")));
  EXPECT_THAT(base.Slice(0, 0, 1, -1), StatusIs(kInvalid));
  EXPECT_THAT(base.Slice(3, 0, 1), StatusIs(kInvalid));
  EXPECT_EQ(base.Slice(0, INT64_MIN, INT64_MAX, INT64_MAX)->dim(0), 1);
}

TEST(TensorViewsTest, SelectAndNarrow) {
  const Tensor base = StridedBase();
  for (int64_t at = -4; at < 4; ++at) {
    ExpectView(base.Select(1, at), base, {3, 5}, [&](Index i) {
      return Index{i[0], at < 0 ? at + 4 : at, i[1]};
    });
  }
  for (const int64_t at : {int64_t{4}, int64_t{-5}, INT64_MAX, INT64_MIN}) {
    EXPECT_THAT(base.Select(1, at), StatusIs(absl::StatusCode::kOutOfRange));
  }
  for (int64_t start = 0; start <= 4; ++start) {
    for (int64_t length = 0; start + length <= 4; ++length) {
      ExpectView(base.Narrow(1, start, length), base, {3, length, 5},
                 [&](Index i) {
                   return Index{i[0], i[1] + start, i[2]};
                 });
    }
  }
  EXPECT_THAT(base.Narrow(1, 2, 3),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("[2, 2 + 3)")));
  EXPECT_THAT(base.Narrow(1, -1, 2), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(base.Narrow(1, 0, -1), StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(base.Narrow(1, 1, INT64_MAX),
              StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(Iota({}).Select(0, 0), StatusIs(kInvalid));
}

TEST(TensorViewsTest, Expand) {
  const Tensor base = *Iota({3, 4}).Slice(1, 1, 2);  // [3, 1]
  ExpectView(base.Expand({2, 3, 5}), base, {2, 3, 5}, [](Index i) {
    return Index{i[1], 0};
  });
  ExpectView(base.Expand({-1, 7}), base, {3, 7}, [](Index i) {
    return Index{i[0], 0};
  });
  ExpectView(base.Expand({3, 0}), base, {3, 0}, [](Index i) { return i; });
  const Tensor scalar = Iota({});
  ExpectView(scalar.Expand({2}), scalar, {2},
             [](const Index&) { return Index{}; });
  EXPECT_THAT(base.Expand({2, 1}), StatusIs(kInvalid, HasSubstr("[2, 1]")));
  EXPECT_THAT(base.Expand({3}), StatusIs(kInvalid));
  EXPECT_THAT(base.Expand({-1, 3, 1}), StatusIs(kInvalid));
  EXPECT_THAT(base.Expand({-5, 3, 1}), StatusIs(kInvalid));
  EXPECT_THAT(base.Expand({int64_t{1} << 62, 3, 2}), StatusIs(kInvalid));
}

TEST(TensorViewsTest, SqueezeAndUnsqueeze) {
  const Tensor base = *StridedBase().Unsqueeze(1)->Unsqueeze(-1);
  EXPECT_EQ(base.shape(), (Shape{3, 1, 4, 5, 1}));
  ExpectView(base.Squeeze(), base, {3, 4, 5}, [](Index i) {
    return Index{i[0], 0, i[1], i[2], 0};
  });
  ExpectView(base.Squeeze(1), base, {3, 4, 5, 1}, [](Index i) {
    return Index{i[0], 0, i[1], i[2], i[3]};
  });
  ExpectView(base.Squeeze(0), base, base.shape(), [](Index i) { return i; });
  EXPECT_THAT(base.Squeeze(5), StatusIs(kInvalid));
  EXPECT_THAT(base.Unsqueeze(6), StatusIs(kInvalid));
  EXPECT_THAT(base.Unsqueeze(-7), StatusIs(kInvalid));
  EXPECT_TRUE(Iota({2, 3}).Unsqueeze(0)->is_contiguous());
  const Tensor highest = Tensor::Zeros(Shape(std::vector<int64_t>(16, 1)));
  EXPECT_THAT(highest.Unsqueeze(0), StatusIs(kInvalid));
  EXPECT_EQ(highest.Squeeze()->rank(), 0);
}

TEST(TensorViewsTest, ReshapeInfersOneSize) {
  const Tensor base = Iota({2, 6});
  EXPECT_EQ(base.Reshape({-1})->shape(), (Shape{12}));
  EXPECT_EQ(base.Reshape({3, -1, 2})->shape(), (Shape{3, 2, 2}));
  EXPECT_EQ(Iota({1}).Reshape({})->rank(), 0);
  EXPECT_EQ(Iota({0, 3}).Reshape({5, 0})->shape(), (Shape{5, 0}));
  EXPECT_THAT(base.Reshape({5}), StatusIs(kInvalid, HasSubstr("[2, 6]")));
  EXPECT_THAT(base.Reshape({5, -1}), StatusIs(kInvalid));
  EXPECT_THAT(base.Reshape({-1, -1}),
              StatusIs(kInvalid, HasSubstr("more than one")));
  EXPECT_THAT(base.Reshape({-2, -6}), StatusIs(kInvalid));
  EXPECT_THAT(Iota({0}).Reshape({0, -1}),
              StatusIs(kInvalid, HasSubstr("any size")));
  EXPECT_THAT(base.Reshape({int64_t{1} << 40, int64_t{1} << 40}),
              StatusIs(kInvalid));
}

TEST(TensorViewsTest, ViewOfTransposedMatrixIsRefusedAndReshapeCopies) {
  const Tensor base = *Iota({2, 3}).T();
  EXPECT_THAT(base.View({6}), StatusIs(kInvalid, HasSubstr("Reshape")));
  const auto copy = base.Reshape({6});
  ASSERT_THAT(copy, IsOk());
  EXPECT_NE(copy->storage(), base.storage());
  EXPECT_THAT(copy->ToVector<int64_t>(), ElementsAre(0, 3, 1, 4, 2, 5));
}

std::vector<int64_t> ElementsByIndex(const Tensor& tensor) {
  std::vector<int64_t> elements;
  for (const Index& index : IndicesOf(tensor.shape())) {
    elements.push_back(At(tensor, index));
  }
  return elements;
}

// A random chain of views.
Tensor RandomView(std::mt19937_64& random) {
  Shape shape;
  for (uint64_t n = random() % 4; n > 0; --n) {
    shape.Append(1 + static_cast<int64_t>(random() % 4));
  }
  Tensor view = Iota(shape);
  for (uint64_t n = random() % 4; n > 0; --n) {
    const int rank = view.rank();
    const int dim = rank == 0 ? 0 : static_cast<int>(random() % rank);
    absl::StatusOr<Tensor> next = view;
    switch (random() % 5) {
      case 0:
        if (rank > 0) next = view.Transpose(dim, rank - 1);
        break;
      case 1:
        if (rank > 0) next = view.Slice(dim, random() % 2, 4, 1 + random() % 2);
        break;
      case 2:
        next = view.Unsqueeze(static_cast<int>(random() % (rank + 1)));
        break;
      case 3:
        if (rank > 0 && view.dim(dim) == 1) {
          Shape expanded = view.shape();
          expanded[dim] = 3;
          next = view.Expand(expanded);
        }
        break;
      default:
        if (rank > 0 && view.dim(dim) > 0) next = view.Select(dim, 0);
    }
    view = *next;
  }
  return view;
}

// A random shape of `num_elements` > 0.
Shape RandomShapeOf(int64_t num_elements, std::mt19937_64& random) {
  Shape shape;
  while (num_elements > 1 || (shape.rank() < 6 && random() % 3 == 0)) {
    int64_t factor = 1 + static_cast<int64_t>(random() % num_elements);
    while (num_elements % factor != 0) --factor;
    if (shape.rank() == kMaxRank - 1) factor = num_elements;
    shape.Append(factor);
    num_elements /= factor;
  }
  return shape;
}

// Whether some strides give the elements of `tensor`, a view of an iota and so
// equal to their own offsets, the shape `shape`: by trying the only candidates.
bool HasView(const Tensor& tensor, const Shape& shape) {
  const std::vector<int64_t> offsets = ElementsByIndex(tensor);
  const Strides steps = Strides::RowMajor(shape);
  int64_t n = 0;
  for (const Index& index : IndicesOf(shape)) {
    int64_t offset = offsets[0];
    for (int i = 0; i < shape.rank(); ++i) {
      if (shape[i] > 1) offset += index[i] * (offsets[steps[i]] - offsets[0]);
    }
    if (offset != offsets[n++]) return false;
  }
  return true;
}

TEST(TensorViewsTest, RandomReshapesKeepTheOrderOfElements) {
  std::mt19937_64 random(99);
  int views = 0;
  int copies = 0;
  for (int i = 0; i < 5000; ++i) {
    const Tensor base = RandomView(random);
    if (base.num_elements() == 0) continue;
    const Shape shape = RandomShapeOf(base.num_elements(), random);
    const auto reshaped = base.Reshape(shape);
    ASSERT_THAT(reshaped, IsOk());
    ASSERT_EQ(reshaped->shape(), shape);
    ASSERT_EQ(ElementsByIndex(*reshaped), ElementsByIndex(base))
        << base.shape() << " with strides " << base.strides() << " to "
        << shape;
    const bool is_view = reshaped->storage() == base.storage();
    ASSERT_EQ(is_view, HasView(base, shape))
        << base.shape() << " with strides " << base.strides() << " to "
        << shape;
    ASSERT_EQ(base.View(shape).ok(), is_view);
    ++(is_view ? views : copies);
  }
  EXPECT_GT(views, 1000);
  EXPECT_GT(copies, 100);
}

TEST(TensorViewsTest, RandomViewsBecomeContiguousInOrder) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 5000; ++i) {
    const Tensor view = RandomView(random);
    const auto dense = view.Contiguous();
    ASSERT_THAT(dense, IsOk());
    ASSERT_TRUE(dense->is_contiguous());
    ASSERT_EQ(dense->is_same(view), view.is_contiguous());
    ASSERT_EQ(dense->ToVector<int64_t>(), ElementsByIndex(view));
    ASSERT_EQ(view.ToVector<int64_t>(), ElementsByIndex(view));
  }
}

}  // namespace
}  // namespace hawser::tensor

// Operations of tensor/ refuse tensors that require gradients, and name the
// recorded operation to use instead.

#include <array>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "async/testing/status_matchers.h"
#include "autograd/grad_mode.h"
#include "autograd/gradcheck.h"
#include "autograd/ops/cast.h"
#include "autograd/ops/conv2d.h"
#include "autograd/ops/copy.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/embedding.h"
#include "autograd/ops/gather.h"
#include "autograd/ops/in_place.h"
#include "autograd/ops/join.h"
#include "autograd/ops/layer_norm.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pool.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/softmax.h"
#include "autograd/ops/view.h"
#include "autograd/variable.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/device.h"
#include "tensor/dtype.h"
#include "tensor/ops/conv2d.h"
#include "tensor/ops/elementwise.h"
#include "tensor/ops/embedding.h"
#include "tensor/ops/gather.h"
#include "tensor/ops/in_place.h"
#include "tensor/ops/join.h"
#include "tensor/ops/layer_norm.h"
#include "tensor/ops/matmul.h"
#include "tensor/ops/pool.h"
#include "tensor/ops/reduce.h"
#include "tensor/ops/softmax.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

namespace hawser::autograd {
namespace {

using async::IsOk;
using async::StatusIs;
using tensor::DType;
using tensor::Shape;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

using Raw = std::function<absl::Status(const Tensor& x)>;
using Recorded = std::function<absl::StatusOr<Tensor>(const Tensor& x)>;

// An operation with `x` as one of its operands.
struct Operation {
  std::string name;
  Shape shape;  // Of `x`.
  Raw raw;
  // Null if a recorded form does not exist.
  Recorded recorded = nullptr;
  // Set if it differs from autograd:: and `name`.
  std::string recorded_name = "";
};

// A tensor of positive constants.
Tensor Constant(const Shape& shape) {
  return RandomVariable(shape, {0.5, 1.5, 3}).Detach();
}

Tensor Ids(const std::vector<int64_t>& ids) {
  return Tensor::FromVector(ids, {static_cast<int64_t>(ids.size())});
}

const Shape kMatrix = {2, 3};
const Shape kImage = {1, 1, 4, 4};
const Shape kPooled = {1, 1, 2, 2};

using Unary = absl::StatusOr<Tensor> (*)(const Tensor&);
using Binary = absl::StatusOr<Tensor> (*)(const Tensor&, const Tensor&);
using Scalar = absl::StatusOr<Tensor> (*)(const Tensor&, double);
using Reduction = absl::StatusOr<Tensor> (*)(const Tensor&, tensor::DimSpan,
                                             bool);
using Method = absl::StatusOr<Tensor> (*)(const Tensor&);

void AddUnary(std::vector<Operation>& all) {
  struct Case {
    const char* name;
    Unary raw;
    Unary recorded;
  };
  const Case cases[] = {
      {"Neg", tensor::Neg, Neg},
      {"Exp", tensor::Exp, Exp},
      {"Log", tensor::Log, Log},
      {"Sqrt", tensor::Sqrt, Sqrt},
      {"Rsqrt", tensor::Rsqrt, Rsqrt},
      {"Abs", tensor::Abs, Abs},
      {"Sign", tensor::Sign, Sign},
      {"Sin", tensor::Sin, Sin},
      {"Cos", tensor::Cos, Cos},
      {"Reciprocal", tensor::Reciprocal, Reciprocal},
      {"Square", tensor::Square, Square},
      {"Relu", tensor::Relu, Relu},
      {"Sigmoid", tensor::Sigmoid, Sigmoid},
      {"Tanh", tensor::Tanh, Tanh},
      {"Gelu", tensor::Gelu, Gelu},
      {"Silu", tensor::Silu, Silu},
  };
  for (const Case& c : cases) {
    all.push_back({c.name, kMatrix,
                   [raw = c.raw](const Tensor& x) { return raw(x).status(); },
                   c.recorded});
  }
}

void AddBinary(std::vector<Operation>& all) {
  struct Case {
    const char* name;
    Binary raw;
    Binary recorded;
  };
  const Case cases[] = {
      {"Add", tensor::Add, Add},
      {"Sub", tensor::Sub, Sub},
      {"AddScaled",
       [](const Tensor& a, const Tensor& b) {
         return tensor::AddScaled(a, b, 2);
       },
       [](const Tensor& a, const Tensor& b) {
         return autograd::AddScaled(a, b, 2);
       }},
      {"Mul", tensor::Mul, Mul},
      {"Div", tensor::Div, Div},
      {"Maximum", tensor::Maximum, Maximum},
      {"Minimum", tensor::Minimum, Minimum},
      {"Pow", tensor::Pow, Pow},
      {"ReluGrad", tensor::ReluGrad, nullptr},
      {"SigmoidGrad", tensor::SigmoidGrad, nullptr},
      {"TanhGrad", tensor::TanhGrad, nullptr},
      {"GeluGrad", tensor::GeluGrad, nullptr},
      {"SiluGrad", tensor::SiluGrad, nullptr},
  };
  for (const Case& c : cases) {
    Recorded left;
    Recorded right;
    if (c.recorded != nullptr) {
      left = [f = c.recorded](const Tensor& x) {
        return f(x, Constant(kMatrix));
      };
      right = [f = c.recorded](const Tensor& x) {
        return f(Constant(kMatrix), x);
      };
    }
    all.push_back({c.name, kMatrix,
                   [f = c.raw](const Tensor& x) {
                     return f(x, Constant(kMatrix)).status();
                   },
                   left});
    all.push_back({c.name, kMatrix,
                   [f = c.raw](const Tensor& x) {
                     return f(Constant(kMatrix), x).status();
                   },
                   right});
  }
  const Tensor condition = Tensor::Ones(kMatrix, {DType::kBool});
  all.push_back({"Where", kMatrix,
                 [=](const Tensor& x) {
                   return tensor::Where(condition, x, Constant({})).status();
                 },
                 [=](const Tensor& x) {
                   return autograd::Where(condition, x, Constant({}));
                 }});
  all.push_back({"Where", kMatrix,
                 [=](const Tensor& x) {
                   return tensor::Where(condition, Constant({}), x).status();
                 },
                 [=](const Tensor& x) {
                   return autograd::Where(condition, Constant({}), x);
                 }});
}

void AddScalarForms(std::vector<Operation>& all) {
  struct Case {
    const char* name;
    Scalar raw;
    Scalar recorded;
  };
  const Case cases[] = {
      {"AddScalar", tensor::AddScalar, autograd::AddScalar},
      {"MulScalar", tensor::MulScalar, MulScalar},
      {"PowScalar", tensor::PowScalar, PowScalar},
  };
  for (const Case& c : cases) {
    all.push_back({c.name, kMatrix,
                   [f = c.raw](const Tensor& x) { return f(x, 2).status(); },
                   [f = c.recorded](const Tensor& x) { return f(x, 2); }});
  }
}

void AddReductions(std::vector<Operation>& all) {
  struct Case {
    const char* name;
    Reduction raw;
    Reduction recorded;
  };
  const Case cases[] = {
      {"Sum", tensor::Sum, Sum},
      {"Mean", tensor::Mean, Mean},
      {"Max", tensor::Max, Max},
      {"Min", tensor::Min, Min},
  };
  for (const Case& c : cases) {
    all.push_back(
        {c.name, kMatrix,
         [f = c.raw](const Tensor& x) { return f(x, {}, false).status(); },
         [f = c.recorded](const Tensor& x) { return f(x, {}, false); }});
  }
  all.push_back({"SumTo", kMatrix,
                 [](const Tensor& x) { return tensor::SumTo(x, {3}).status(); },
                 [](const Tensor& x) { return autograd::SumTo(x, {3}); }});
  all.push_back({"Norm", kMatrix,
                 [](const Tensor& x) { return tensor::Norm(x).status(); },
                 [](const Tensor& x) { return autograd::Norm(x); }});
}

void AddSoftmax(std::vector<Operation>& all) {
  all.push_back({"Softmax", kMatrix,
                 [](const Tensor& x) { return tensor::Softmax(x, 1).status(); },
                 [](const Tensor& x) { return autograd::Softmax(x, 1); }});
  all.push_back(
      {"LogSoftmax", kMatrix,
       [](const Tensor& x) { return tensor::LogSoftmax(x, 1).status(); },
       [](const Tensor& x) { return autograd::LogSoftmax(x, 1); }});
  all.push_back({"SoftmaxCrossEntropy", kMatrix,
                 [](const Tensor& x) {
                   return tensor::SoftmaxCrossEntropy(x, Ids({0, 2})).status();
                 },
                 [](const Tensor& x) {
                   return autograd::SoftmaxCrossEntropy(x, Ids({0, 2}));
                 }});
  for (const auto grad : {tensor::SoftmaxGrad, tensor::LogSoftmaxGrad}) {
    const std::string name =
        grad == tensor::SoftmaxGrad ? "SoftmaxGrad" : "LogSoftmaxGrad";
    all.push_back({name, kMatrix, [=](const Tensor& x) {
                     return grad(x, Constant(kMatrix), 1).status();
                   }});
    all.push_back({name, kMatrix, [=](const Tensor& x) {
                     return grad(Constant(kMatrix), x, 1).status();
                   }});
  }
  all.push_back({"SoftmaxCrossEntropyGrad", kMatrix, [](const Tensor& x) {
                   return tensor::SoftmaxCrossEntropyGrad(x, Ids({0, 2}),
                                                          Constant({}))
                       .status();
                 }});
  all.push_back({"SoftmaxCrossEntropyGrad", {}, [](const Tensor& x) {
                   return tensor::SoftmaxCrossEntropyGrad(Constant(kMatrix),
                                                          Ids({0, 2}), x)
                       .status();
                 }});
}

void AddMatrixProducts(std::vector<Operation>& all) {
  for (const bool left : {true, false}) {
    const Shape other = {3, 2};
    all.push_back({"MatMul", kMatrix,
                   [=](const Tensor& x) {
                     return (left ? tensor::MatMul(x, Constant(other))
                                  : tensor::MatMul(Constant(other), x))
                         .status();
                   },
                   [=](const Tensor& x) {
                     return left ? autograd::MatMul(x, Constant(other))
                                 : autograd::MatMul(Constant(other), x);
                   }});
  }
  // x, w and bias in turn.
  const std::array<Shape, 3> shapes = {Shape({4, 3}), Shape({2, 3}),
                                       Shape({2})};
  for (size_t i = 0; i < shapes.size(); ++i) {
    const auto operands = [=](const Tensor& x) {
      std::array<Tensor, 3> result;
      for (size_t j = 0; j < shapes.size(); ++j) {
        result[j] = i == j ? x : Constant(shapes[j]);
      }
      return result;
    };
    all.push_back({"Linear", shapes[i],
                   [=](const Tensor& x) {
                     const auto [a, w, bias] = operands(x);
                     return tensor::Linear(a, w, bias).status();
                   },
                   [=](const Tensor& x) {
                     const auto [a, w, bias] = operands(x);
                     return autograd::Linear(a, w, bias);
                   }});
  }
  // x, w, y and dy in turn.
  const std::array<Shape, 4> grad_shapes = {Shape({4, 3}), Shape({2, 3}),
                                            Shape({4, 2}), Shape({4, 2})};
  for (size_t i = 0; i < grad_shapes.size(); ++i) {
    all.push_back({"LinearGrad", grad_shapes[i], [=](const Tensor& x) {
                     std::array<Tensor, 4> t;
                     for (size_t j = 0; j < t.size(); ++j) {
                       t[j] = i == j ? x : Constant(grad_shapes[j]);
                     }
                     return tensor::LinearGrad(t[0], t[1], t[2], t[3],
                                               Activation::kRelu)
                         .status();
                   }});
  }
}

void AddConvolutions(std::vector<Operation>& all) {
  const Shape kernel = {1, 1, 3, 3};
  all.push_back(
      {"Conv2d", kImage,
       [=](const Tensor& x) {
         return tensor::Conv2d(x, Constant(kernel), Tensor()).status();
       },
       [=](const Tensor& x) {
         return autograd::Conv2d(x, Constant(kernel), Tensor());
       }});
  all.push_back(
      {"Conv2d", kernel,
       [](const Tensor& x) {
         return tensor::Conv2d(Constant(kImage), x, Tensor()).status();
       },
       [](const Tensor& x) {
         return autograd::Conv2d(Constant(kImage), x, Tensor());
       }});
  all.push_back(
      {"Conv2d",
       {1},
       [=](const Tensor& x) {
         return tensor::Conv2d(Constant(kImage), Constant(kernel), x).status();
       },
       [=](const Tensor& x) {
         return autograd::Conv2d(Constant(kImage), Constant(kernel), x);
       }});
  all.push_back(
      {"Conv2dInputGrad", kPooled, [=](const Tensor& x) {
         return tensor::Conv2dInputGrad(x, Constant(kernel), kImage).status();
       }});
  all.push_back(
      {"Conv2dInputGrad", kernel, [](const Tensor& x) {
         return tensor::Conv2dInputGrad(Constant(kPooled), x, kImage).status();
       }});
  all.push_back(
      {"Conv2dWeightGrad", kPooled, [=](const Tensor& x) {
         return tensor::Conv2dWeightGrad(x, Constant(kImage), kernel).status();
       }});
  all.push_back(
      {"Conv2dWeightGrad", kImage, [=](const Tensor& x) {
         return tensor::Conv2dWeightGrad(Constant(kPooled), x, kernel).status();
       }});
  all.push_back({"Conv2dBiasGrad", kPooled, [](const Tensor& x) {
                   return tensor::Conv2dBiasGrad(x).status();
                 }});
}

void AddPools(std::vector<Operation>& all) {
  const Pool2dOptions options = {.kernel = {2, 2}, .stride = {2, 2}};
  all.push_back(
      {"MaxPool2d", kImage,
       [=](const Tensor& x) { return tensor::MaxPool2d(x, options).status(); },
       [=](const Tensor& x) { return autograd::MaxPool2d(x, options); }});
  all.push_back(
      {"AvgPool2d", kImage,
       [=](const Tensor& x) { return tensor::AvgPool2d(x, options).status(); },
       [=](const Tensor& x) { return autograd::AvgPool2d(x, options); }});
  all.push_back({"MaxPool2dGrad", kPooled, [](const Tensor& x) {
                   return tensor::MaxPool2dGrad(
                              x, Tensor::Zeros(kPooled, {DType::kI64}), kImage)
                       .status();
                 }});
  all.push_back({"AvgPool2dGrad", kPooled, [=](const Tensor& x) {
                   return tensor::AvgPool2dGrad(x, kImage, options).status();
                 }});
}

void AddLayerNorm(std::vector<Operation>& all) {
  // x, weight and bias in turn.
  const std::array<Shape, 3> shapes = {kMatrix, Shape({3}), Shape({3})};
  for (size_t i = 0; i < shapes.size(); ++i) {
    const auto operand = [=](size_t j, const Tensor& x) {
      return i == j ? x : Constant(shapes[j]);
    };
    all.push_back({"LayerNorm", shapes[i],
                   [=](const Tensor& x) {
                     return tensor::LayerNorm(operand(0, x), 1, operand(1, x),
                                              operand(2, x))
                         .status();
                   },
                   [=](const Tensor& x) {
                     return autograd::LayerNorm(operand(0, x), 1, operand(1, x),
                                                operand(2, x));
                   }});
  }
  // dy, x, mean, rstd and weight in turn.
  const std::array<Shape, 5> grad_shapes = {kMatrix, kMatrix, Shape({2}),
                                            Shape({2}), Shape({3})};
  for (size_t i = 0; i < grad_shapes.size(); ++i) {
    all.push_back({"LayerNormGrad", grad_shapes[i], [=](const Tensor& x) {
                     const auto operand = [&](size_t j) {
                       return i == j ? x : Constant(grad_shapes[j]);
                     };
                     return tensor::LayerNormGrad(operand(0), operand(1), 1,
                                                  operand(2), operand(3),
                                                  operand(4))
                         .status();
                   }});
  }
}

void AddIndexing(std::vector<Operation>& all) {
  const Tensor index = Tensor::FromVector<int64_t>({0, 1, 0}, {1, 3});
  const Tensor row = Ids({1});
  const Shape slice = {1, 3};
  all.push_back(
      {"Gather", kMatrix,
       [=](const Tensor& x) { return tensor::Gather(x, 0, index).status(); },
       [=](const Tensor& x) { return autograd::Gather(x, 0, index); }});
  all.push_back(
      {"IndexSelect", kMatrix,
       [=](const Tensor& x) { return tensor::IndexSelect(x, 0, row).status(); },
       [=](const Tensor& x) { return autograd::IndexSelect(x, 0, row); }});
  all.push_back(
      {"ScatterAdd", kMatrix,
       [=](const Tensor& x) {
         return tensor::ScatterAdd(x, 0, index, Constant(slice)).status();
       },
       [=](const Tensor& x) {
         return autograd::ScatterAdd(x, 0, index, Constant(slice));
       }});
  all.push_back(
      {"ScatterAdd", slice,
       [=](const Tensor& x) {
         return tensor::ScatterAdd(Constant(kMatrix), 0, index, x).status();
       },
       [=](const Tensor& x) {
         return autograd::ScatterAdd(Constant(kMatrix), 0, index, x);
       }});
  all.push_back({"IndexAdd", kMatrix,
                 [=](const Tensor& x) {
                   return tensor::IndexAdd(x, 0, row, Constant(slice)).status();
                 },
                 [=](const Tensor& x) {
                   return autograd::IndexAdd(x, 0, row, Constant(slice));
                 }});
  all.push_back(
      {"IndexAdd", slice,
       [=](const Tensor& x) {
         return tensor::IndexAdd(Constant(kMatrix), 0, row, x).status();
       },
       [=](const Tensor& x) {
         return autograd::IndexAdd(Constant(kMatrix), 0, row, x);
       }});
}

void AddEmbeddings(std::vector<Operation>& all) {
  const Tensor ids = Ids({0, 1});
  const Tensor offsets = Ids({0});
  all.push_back(
      {"Embedding", kMatrix,
       [=](const Tensor& x) { return tensor::Embedding(x, ids).status(); },
       [=](const Tensor& x) { return autograd::Embedding(x, ids); }});
  all.push_back(
      {"EmbeddingBag", kMatrix,
       [=](const Tensor& x) {
         return tensor::EmbeddingBag(x, ids, offsets, BagMode::kSum).status();
       },
       [=](const Tensor& x) {
         return autograd::EmbeddingBag(x, ids, offsets, BagMode::kSum);
       }});
  all.push_back({"EmbeddingGrad", kMatrix, [=](const Tensor& x) {
                   return tensor::EmbeddingGrad(x, ids, 2).status();
                 }});
  all.push_back({"EmbeddingBagGrad", {1, 3}, [=](const Tensor& x) {
                   return tensor::EmbeddingBagGrad(x, ids, offsets, Tensor(),
                                                   BagMode::kSum, 2)
                       .status();
                 }});
}

void AddJoins(std::vector<Operation>& all) {
  // `x` after another tensor.
  const auto pair = [](const Tensor& x) {
    return std::vector<Tensor>{Constant(kMatrix), x};
  };
  all.push_back(
      {"Concat", kMatrix,
       [=](const Tensor& x) { return tensor::Concat(pair(x), 0).status(); },
       [=](const Tensor& x) { return autograd::Concat(pair(x), 0); }});
  all.push_back(
      {"Stack", kMatrix,
       [=](const Tensor& x) { return tensor::Stack(pair(x), 0).status(); },
       [=](const Tensor& x) { return autograd::Stack(pair(x), 0); }});
  const std::vector<int64_t> sizes = {1, 2};
  all.push_back(
      {"Split", kMatrix,
       [=](const Tensor& x) { return tensor::Split(x, sizes, 1).status(); },
       [=](const Tensor& x) -> absl::StatusOr<Tensor> {
         ASSIGN_OR_RETURN(const auto parts, autograd::Split(x, sizes, 1));
         return parts[1];
       }});
}

// `write` and `recorded` change their first argument.
void AddInPlaceTarget(std::vector<Operation>& all, const std::string& name,
                      const std::function<absl::Status(Tensor&)>& write,
                      const std::function<absl::Status(Tensor&)>& recorded) {
  all.push_back({name, kMatrix,
                 [=](const Tensor& x) {
                   Tensor target = x;
                   return write(target);
                 },
                 [=](const Tensor& x) -> absl::StatusOr<Tensor> {
                   // A leaf cannot be written while recording.
                   ASSIGN_OR_RETURN(Tensor target, Clone(x));
                   RETURN_IF_ERROR(recorded(target));
                   return target;
                 }});
}

void AddInPlaceSource(
    std::vector<Operation>& all, const std::string& name,
    const std::function<absl::Status(Tensor&, const Tensor&)>& write,
    const std::function<absl::Status(Tensor&, const Tensor&)>& recorded) {
  all.push_back({name, kMatrix,
                 [=](const Tensor& x) {
                   Tensor target = Constant(kMatrix);
                   return write(target, x);
                 },
                 [=](const Tensor& x) -> absl::StatusOr<Tensor> {
                   Tensor target = Constant(kMatrix);
                   RETURN_IF_ERROR(recorded(target, x));
                   return target;
                 }});
}

void AddInPlaceOperations(std::vector<Operation>& all) {
  AddInPlaceTarget(
      all, "AddInPlace",
      [](Tensor& a) { return tensor::AddInPlace(a, Constant(kMatrix)); },
      [](Tensor& a) { return autograd::AddInPlace(a, Constant(kMatrix)); });
  AddInPlaceSource(
      all, "AddInPlace",
      [](Tensor& a, const Tensor& b) { return tensor::AddInPlace(a, b); },
      [](Tensor& a, const Tensor& b) { return autograd::AddInPlace(a, b); });
  AddInPlaceTarget(
      all, "MulInPlace",
      [](Tensor& a) { return tensor::MulInPlace(a, Constant(kMatrix)); },
      [](Tensor& a) { return autograd::MulInPlace(a, Constant(kMatrix)); });
  AddInPlaceSource(all, "MulInPlace", tensor::MulInPlace, autograd::MulInPlace);
  AddInPlaceTarget(
      all, "MulScalarInPlace",
      [](Tensor& a) { return tensor::MulScalarInPlace(a, 2); },
      [](Tensor& a) { return autograd::MulScalarInPlace(a, 2); });
  AddInPlaceTarget(
      all, "FillInPlace", [](Tensor& a) { return tensor::FillInPlace(a, 2); },
      [](Tensor& a) { return autograd::FillInPlace(a, 2); });
  AddInPlaceTarget(
      all, "CopyInto",
      [](Tensor& a) { return tensor::CopyInto(a, Constant(kMatrix)); },
      [](Tensor& a) { return autograd::CopyInto(a, Constant(kMatrix)); });
  AddInPlaceSource(all, "CopyInto", tensor::CopyInto, autograd::CopyInto);
}

void AddMethods(std::vector<Operation>& all) {
  struct Case {
    const char* name;
    Method raw;
    const char* recorded_name;
    Method recorded;
  };
  static constexpr std::array<int, 2> kTurned = {1, 0};
  const Case cases[] = {
      {"Reshape", [](const Tensor& x) { return x.Reshape({6}); }, "Reshape",
       [](const Tensor& x) { return Reshape(x, {6}); }},
      {"View", [](const Tensor& x) { return x.View({6}); }, "Reshape",
       [](const Tensor& x) { return Reshape(x, {6}); }},
      {"Transpose", [](const Tensor& x) { return x.Transpose(0, 1); },
       "Transpose", [](const Tensor& x) { return Transpose(x, 0, 1); }},
      {"T", [](const Tensor& x) { return x.T(); }, "Transpose",
       [](const Tensor& x) { return Transpose(x, 0, 1); }},
      {"Permute", [](const Tensor& x) { return x.Permute(kTurned); }, "Permute",
       [](const Tensor& x) { return Permute(x, kTurned); }},
      {"Slice", [](const Tensor& x) { return x.Slice(1, 0, 2); }, "Slice",
       [](const Tensor& x) { return Slice(x, 1, 0, 2); }},
      {"Select", [](const Tensor& x) { return x.Select(1, 0); }, "Select",
       [](const Tensor& x) { return Select(x, 1, 0); }},
      {"Narrow", [](const Tensor& x) { return x.Narrow(1, 0, 2); }, "Narrow",
       [](const Tensor& x) { return Narrow(x, 1, 0, 2); }},
      {"Expand",
       [](const Tensor& x) {
         return x.Expand({4, 2, 3});
       },
       "Expand",
       [](const Tensor& x) {
         return Expand(x, {4, 2, 3});
       }},
      {"Squeeze", [](const Tensor& x) { return x.Squeeze(); }, "Squeeze",
       [](const Tensor& x) { return Squeeze(x); }},
      {"Squeeze", [](const Tensor& x) { return x.Squeeze(0); }, "Squeeze",
       [](const Tensor& x) { return Squeeze(x, 0); }},
      {"Unsqueeze", [](const Tensor& x) { return x.Unsqueeze(0); }, "Unsqueeze",
       [](const Tensor& x) { return Unsqueeze(x, 0); }},
      {"Contiguous", [](const Tensor& x) { return x.Contiguous(); },
       "Contiguous", [](const Tensor& x) { return Contiguous(x); }},
      {"Clone", [](const Tensor& x) { return x.Clone(); }, "Clone",
       [](const Tensor& x) { return Clone(x); }},
      {"To", [](const Tensor& x) { return x.To(DType::kF32); }, "Cast",
       [](const Tensor& x) { return Cast(x, DType::kF32); }},
      {"To", [](const Tensor& x) { return x.To(tensor::kCpu); }, "ToDevice",
       [](const Tensor& x) { return ToDevice(x, tensor::kCpu); }},
  };
  for (const Case& c : cases) {
    all.push_back({c.name, kMatrix,
                   [f = c.raw](const Tensor& x) { return f(x).status(); },
                   c.recorded, c.recorded_name});
  }
  AddInPlaceTarget(
      all, "CopyFrom", [](Tensor& a) { return a.CopyFrom(Constant(kMatrix)); },
      [](Tensor& a) { return autograd::CopyInto(a, Constant(kMatrix)); });
  all.back().recorded_name = "CopyInto";
  AddInPlaceSource(
      all, "CopyFrom", [](Tensor& a, const Tensor& b) { return a.CopyFrom(b); },
      autograd::CopyInto);
  all.back().recorded_name = "CopyInto";
}

std::vector<Operation> Operations() {
  std::vector<Operation> all;
  AddUnary(all);
  AddBinary(all);
  AddScalarForms(all);
  AddReductions(all);
  AddSoftmax(all);
  AddMatrixProducts(all);
  AddConvolutions(all);
  AddPools(all);
  AddLayerNorm(all);
  AddIndexing(all);
  AddEmbeddings(all);
  AddJoins(all);
  AddInPlaceOperations(all);
  AddMethods(all);
  return all;
}

// Operations whose results do not have gradients, or that do not take tensors.
const std::set<std::string>& WithoutGradient() {
  static const auto* const names = new std::set<std::string>{
      "Eq",       "Ne",          "Lt",       "Le",     "Gt",
      "Ge",       "ArgMax",      "Uniform",  "Normal", "Bernoulli",
      "RandPerm", "FromStorage", "TryEmpty", "item"};
  return *names;
}

Tensor VariableFor(const Operation& operation) {
  return RandomVariable(operation.shape, {0.5, 1.5});
}

TEST(RawOperationsTest, RefuseTensorsThatRequireGradients) {
  for (const Operation& operation : Operations()) {
    SCOPED_TRACE(operation.name);
    const Tensor x = VariableFor(operation);
    const absl::Status status = operation.raw(x);
    const std::string recorded = operation.recorded_name.empty()
                                     ? operation.name
                                     : operation.recorded_name;
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         AllOf(HasSubstr(operation.name + ":"),
                               HasSubstr("f64["), HasSubstr("NoGradGuard"))));
    const std::string text(status.message());
    if (operation.recorded) {
      EXPECT_THAT(text, HasSubstr("use autograd::" + recorded + ","));
    } else {
      EXPECT_THAT(text, Not(HasSubstr("use ")));
    }
    EXPECT_EQ(x.version(), 0u) << "it was written in spite of the error";
  }
}

TEST(RawOperationsTest, AcceptThemUnderNoGrad) {
  for (const Operation& operation : Operations()) {
    SCOPED_TRACE(operation.name);
    EXPECT_THAT(operation.raw(VariableFor(operation).Detach()), IsOk());
    const NoGradGuard no_grad;
    EXPECT_THAT(operation.raw(VariableFor(operation)), IsOk());
  }
}

TEST(RawOperationsTest, OperationsNamedInErrorsAreRecorded) {
  for (const Operation& operation : Operations()) {
    if (!operation.recorded) continue;
    SCOPED_TRACE(operation.name);
    const Tensor x = VariableFor(operation);
    const absl::StatusOr<Tensor> y = operation.recorded(x);
    ASSERT_THAT(y, IsOk());
    EXPECT_TRUE(RequiresGrad(*y));
    // The first call did not change the mode of the thread.
    EXPECT_THAT(operation.raw(x),
                StatusIs(absl::StatusCode::kFailedPrecondition));
  }
}

TEST(RawOperationsTest, VariableCanBeReadWithoutAGuard) {
  const Tensor x = RandomVariable({2, 3}, {0.5, 1.5});
  const Tensor y = *Transpose(x, 0, 1);
  for (const auto compare : {tensor::Eq, tensor::Ne, tensor::Lt, tensor::Le,
                             tensor::Gt, tensor::Ge}) {
    EXPECT_THAT(compare(y, Constant({})), IsOk());
    EXPECT_THAT(compare(Constant({}), y), IsOk());
  }
  EXPECT_THAT(tensor::ArgMax(y, 0), IsOk());
  EXPECT_THAT(tensor::ArgMax(*autograd::Sum(x), 0), IsOk());
  EXPECT_THAT(y.To(DType::kI64), IsOk());
  EXPECT_THAT(autograd::Sum(x)->item<double>(), IsOk());
  EXPECT_EQ(y.ToVector<double>().size(), 6u);
  EXPECT_THAT(y.DebugString(), HasSubstr("{"));
  EXPECT_THAT(y.Detach().Clone(), IsOk());
}

TEST(RawOperationsTest, AcceptTensorsWhoseGradientWasSwitchedOff) {
  const Tensor x = RandomVariable({2});
  ASSERT_THAT(SetRequiresGrad(x, false), IsOk());
  EXPECT_THAT(tensor::Add(x, x), IsOk());
}

// Collects the names of functions that return a status in the declarations of a
// header, up to `end`.
void CollectNames(const std::string& path, std::string_view indent,
                  std::string_view end, std::set<std::string>& names) {
  std::ifstream file(path);
  ASSERT_TRUE(file.good()) << path;
  std::string line;
  while (std::getline(file, line) && (end.empty() || line != end)) {
    std::string_view rest = line;
    if (!rest.starts_with(indent)) continue;
    rest.remove_prefix(indent.size());
    for (const std::string_view word : {"static ", "inline "}) {
      if (rest.starts_with(word)) rest.remove_prefix(word.size());
    }
    if (!rest.starts_with("absl::Status")) continue;
    const size_t open = rest.find('(');
    if (open == std::string_view::npos) continue;
    const size_t space = rest.rfind(' ', open);
    names.emplace(rest.substr(space + 1, open - space - 1));
  }
}

TEST(RawOperationsTest, AllOperationsAreTested) {
  std::set<std::string> declared;
  for (const char* header :
       {"conv2d", "elementwise", "embedding", "gather", "in_place", "join",
        "layer_norm", "matmul", "pool", "random", "reduce", "softmax"}) {
    CollectNames("tensor/ops/" + std::string(header) + ".h", "", "", declared);
  }
  CollectNames("tensor/tensor.h", "  ", " private:", declared);
  std::set<std::string> tested = WithoutGradient();
  for (const Operation& operation : Operations()) tested.insert(operation.name);
  EXPECT_EQ(tested, declared);
}

}  // namespace
}  // namespace hawser::autograd

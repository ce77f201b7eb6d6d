#include "collectives/testing/conformance.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "collectives/process_group.h"
#include "collectives/reduce_op.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::collectives {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using tensor::DType;
using ::testing::HasSubstr;

std::string ConformanceName(
    const testing::TestParamInfo<ConformanceParam>& info) {
  return absl::StrCat("Ranks", info.param.size);
}

std::vector<ConformanceParam> ConformanceParams(const MakeBackends& make,
                                                const ConformanceTraits& traits,
                                                const std::vector<int>& sizes) {
  std::vector<ConformanceParam> params;
  for (const int size : sizes) {
    params.push_back({make, size, traits});
  }
  return params;
}

namespace {

constexpr DType kReducible[] = {DType::kF32,  DType::kF64, DType::kF16,
                                DType::kBF16, DType::kI64, DType::kI32,
                                DType::kU8};

// Lengths: none, one, odd, one that passes in one step, and one that needs many
// segments, of which the last is short.
constexpr int64_t kLengths[] = {0, 1, 7, 1000, 200'003};

// The operand of a rank: small numbers, of which 16-bit types hold sums and
// products exactly.
Tensor Operand(DType dtype, int64_t length, int rank) {
  std::mt19937_64 random(static_cast<uint64_t>(rank) * 1000 +
                         static_cast<uint64_t>(length));
  std::vector<int64_t> values;
  for (int64_t i = 0; i < length; ++i) {
    values.push_back(static_cast<int64_t>(random() % 2 + 1));
  }
  return *Tensor::FromVector(values, {length}).To(dtype);
}

template <class T>
T CombineOne(ReduceOp op, T a, T b) {
  switch (op) {
    case ReduceOp::kProduct:
      return static_cast<T>(a * b);
    case ReduceOp::kMin:
      return std::min(a, b);
    case ReduceOp::kMax:
      return std::max(a, b);
    case ReduceOp::kSum:
    case ReduceOp::kAverage:
      return static_cast<T>(a + b);
    case ReduceOp::kBitAnd:
    case ReduceOp::kBitOr:
    case ReduceOp::kBitXor:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    if (op == ReduceOp::kBitAnd) return static_cast<T>(a & b);
    if (op == ReduceOp::kBitOr) return static_cast<T>(a | b);
    return static_cast<T>(a ^ b);
  }
  return a;
}

// One rank after the other, in f64 or i64.
Tensor SerialReduction(DType dtype, ReduceOp op, int64_t length, int size) {
  const auto reduce = [&]<class T>(DType wide) {
    std::vector<T> total;
    for (int rank = 0; rank < size; ++rank) {
      const std::vector<T> operand =
          Operand(dtype, length, rank).To(wide)->template ToVector<T>();
      if (rank == 0) {
        total = operand;
        continue;
      }
      for (size_t i = 0; i < total.size(); ++i) {
        total[i] = CombineOne(op, total[i], operand[i]);
      }
    }
    if (op == ReduceOp::kAverage) {
      for (T& value : total) value = static_cast<T>(value / size);
    }
    return *Tensor::FromVector(total, {length}).To(dtype);
  };
  return tensor::IsFloatingPoint(dtype)
             ? reduce.template operator()<double>(DType::kF64)
             : reduce.template operator()<int64_t>(DType::kI64);
}

bool Applies(DType dtype, ReduceOp op) {
  return CheckReduction({.dtype = dtype, .op = op}).ok();
}

bool IsBitwise(ReduceOp op) {
  return op == ReduceOp::kBitAnd || op == ReduceOp::kBitOr ||
         op == ReduceOp::kBitXor;
}

std::vector<ReduceOp> AllOps() {
  std::vector<ReduceOp> ops;
  for (int i = 0; i < kNumReduceOps; ++i)
    ops.push_back(static_cast<ReduceOp>(i));
  return ops;
}

std::string What(const char* operation, DType dtype, int64_t length,
                 ReduceOp op = ReduceOp::kSum) {
  return absl::StrCat(operation, " of ", length, " ",
                      std::string(tensor::DTypeName(dtype)), " by ",
                      std::string(ReduceOpName(op)));
}

}  // namespace

void ConformanceTest::ExpectEqual(const Tensor& actual, const Tensor& expected,
                                  const std::string& what) {
  ASSERT_EQ(actual.dtype(), expected.dtype()) << what;
  // f32 and narrower averages are rounded once.
  EXPECT_EQ(actual.To(DType::kF64)->ToVector<double>(),
            expected.To(DType::kF64)->ToVector<double>())
      << what;
}

void ConformanceTest::ExpectReduced(const Tensor& actual, ReduceOp op,
                                    int64_t length, int size,
                                    const std::string& what) const {
  const DType dtype = actual.dtype();
  const Tensor expected = SerialReduction(dtype, op, length, size);
  const bool is_short = dtype == DType::kF16 || dtype == DType::kBF16;
  if (op != ReduceOp::kAverage || !is_short || traits().rounds_averages_once) {
    ExpectEqual(actual, expected, what);
    return;
  }
  const std::vector<float> values = actual.To(DType::kF32)->ToVector<float>();
  const std::vector<float> wanted = expected.To(DType::kF32)->ToVector<float>();
  ASSERT_EQ(values.size(), wanted.size()) << what;
  // The last bit of each operand and of the sum.
  const float tolerance = dtype == DType::kF16 ? 0x1p-9f : 0x1p-6f;
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_NEAR(values[i], wanted[i], tolerance * wanted[i]) << what;
  }
}

TEST_P(ConformanceTest, AllReduce) {
  Run([this](ProcessGroup& group) {
    for (const DType dtype : kReducible) {
      for (const ReduceOp op : AllOps()) {
        if (!Applies(dtype, op)) continue;
        for (const int64_t length : kLengths) {
          // Segments do not depend on the operation.
          if (length > 1000 && op != ReduceOp::kSum) continue;
          Tensor data = Operand(dtype, length, group.rank());
          if (IsBitwise(op) && !traits().has_bitwise_ops) {
            ASSERT_THAT(group.AllReduce(data, op),
                        StatusIs(absl::StatusCode::kUnimplemented,
                                 HasSubstr(std::string(ReduceOpName(op)))));
            continue;
          }
          ASSERT_THAT(group.AllReduce(data, op), IsOk());
          ExpectReduced(data, op, length, group.size(),
                        What("all-reduce", dtype, length, op));
        }
      }
    }
  });
}

TEST_P(ConformanceTest, AllReduceOfSeveralTensors) {
  Run([](ProcessGroup& group) {
    std::vector<Tensor> tensors;
    for (const int64_t length : kLengths) {
      tensors.push_back(Operand(DType::kF32, length, group.rank()));
    }
    ASSERT_THAT(group.AllReduce(tensors), IsOk());
    for (const Tensor& each : tensors) {
      ExpectEqual(each,
                  SerialReduction(DType::kF32, ReduceOp::kSum,
                                  each.num_elements(), group.size()),
                  "several");
    }
  });
}

TEST_P(ConformanceTest, AllReduceIsTheSameOnAllRanks) {
  Run([](ProcessGroup& group) {
    for (const int64_t length : {5000, 200'000}) {
      std::mt19937_64 random(static_cast<uint64_t>(group.rank()));
      std::normal_distribution<float> normal(0, 1000);
      std::vector<float> values(static_cast<size_t>(length));
      for (float& value : values) value = normal(random);
      Tensor sum = Tensor::FromVector(values, {length});
      ASSERT_THAT(group.AllReduce(sum), IsOk());
      Tensor first = *sum.Clone();
      ASSERT_THAT(group.Broadcast(first, 0), IsOk());
      EXPECT_EQ(sum.ToVector<float>(), first.ToVector<float>());
    }
  });
}

TEST_P(ConformanceTest, NanIsKept) {
  if (!traits().keeps_nan) GTEST_SKIP() << "the backend drops a NaN";
  Run([](ProcessGroup& group) {
    for (const ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax}) {
      Tensor data = Tensor::Full({40}, group.rank());
      if (group.rank() == group.size() / 2) {
        data.data<float>()[3] = std::numeric_limits<float>::quiet_NaN();
      }
      ASSERT_THAT(group.AllReduce(data, op), IsOk());
      const std::vector<float> values = data.ToVector<float>();
      EXPECT_TRUE(std::isnan(values[3]));
      EXPECT_EQ(values[4], op == ReduceOp::kMin ? 0.f : group.size() - 1.f);
    }
  });
}

TEST_P(ConformanceTest, Reduce) {
  Run([this](ProcessGroup& group) {
    for (int root = 0; root < group.size(); ++root) {
      for (const DType dtype : kReducible) {
        for (const int64_t length : kLengths) {
          Tensor data = Operand(dtype, length, group.rank());
          ASSERT_THAT(group.Reduce(data, root, ReduceOp::kAverage), IsOk());
          const std::string what = What("reduce", dtype, length);
          if (group.rank() == root) {
            ExpectReduced(data, ReduceOp::kAverage, length, group.size(), what);
          } else {
            ExpectEqual(data, Operand(dtype, length, group.rank()), what);
          }
        }
      }
    }
  });
}

TEST_P(ConformanceTest, Broadcast) {
  Run([](ProcessGroup& group) {
    for (int root = 0; root < group.size(); ++root) {
      for (const int64_t length : kLengths) {
        Tensor data = Operand(DType::kI32, length, group.rank());
        ASSERT_THAT(group.Broadcast(data, root), IsOk());
        ExpectEqual(data, Operand(DType::kI32, length, root), "broadcast");
      }
    }
  });
}

TEST_P(ConformanceTest, AllGather) {
  Run([](ProcessGroup& group) {
    for (const int64_t length : kLengths) {
      const Tensor input = Operand(DType::kF32, length, group.rank());
      std::vector<Tensor> outputs;
      for (int i = 0; i < group.size(); ++i) {
        outputs.push_back(Tensor::Zeros({length}));
      }
      ASSERT_THAT(group.AllGather(input, outputs), IsOk());
      Tensor one = Tensor::Zeros({group.size(), length});
      ASSERT_THAT(group.AllGather(input, one), IsOk());
      for (int i = 0; i < group.size(); ++i) {
        const Tensor expected = Operand(DType::kF32, length, i);
        ExpectEqual(outputs[static_cast<size_t>(i)], expected, "all-gather");
        ExpectEqual(*one.Select(0, i), expected, "all-gather into one");
      }
    }
  });
}

TEST_P(ConformanceTest, GatherAndScatter) {
  Run([](ProcessGroup& group) {
    for (int root = 0; root < group.size(); ++root) {
      for (const int64_t length : kLengths) {
        const bool is_root = group.rank() == root;
        std::vector<Tensor> all;
        for (int i = 0; is_root && i < group.size(); ++i) {
          all.push_back(Tensor::Zeros({length}, {.dtype = DType::kF64}));
        }
        const Tensor input = Operand(DType::kF64, length, group.rank());
        ASSERT_THAT(group.Gather(input, all, root), IsOk());
        for (size_t i = 0; i < all.size(); ++i) {
          ExpectEqual(all[i], Operand(DType::kF64, length, static_cast<int>(i)),
                      "gather");
        }
        Tensor output = Tensor::Zeros({length}, {.dtype = DType::kF64});
        ASSERT_THAT(group.Scatter(all, output, root), IsOk());
        ExpectEqual(output, input, "scatter");
      }
    }
  });
}

TEST_P(ConformanceTest, ReduceScatter) {
  Run([](ProcessGroup& group) {
    for (const DType dtype : kReducible) {
      for (const int64_t length : kLengths) {
        // Every rank has the same inputs but for its own factor.
        std::vector<Tensor> inputs;
        Tensor one = Tensor::Empty({group.size(), length}, {.dtype = dtype});
        for (int i = 0; i < group.size(); ++i) {
          inputs.push_back(
              Operand(dtype, length, (group.rank() + i) % group.size()));
          Tensor part = *one.Select(0, i);
          ASSERT_THAT(part.CopyFrom(inputs.back()), IsOk());
        }
        const Tensor expected =
            SerialReduction(dtype, ReduceOp::kMax, length, group.size());
        Tensor output = Tensor::Zeros({length}, {.dtype = dtype});
        ASSERT_THAT(group.ReduceScatter(inputs, output, ReduceOp::kMax),
                    IsOk());
        ExpectEqual(output, expected, What("reduce-scatter", dtype, length));
        output = Tensor::Zeros({length}, {.dtype = dtype});
        ASSERT_THAT(group.ReduceScatter(one, output, ReduceOp::kMax), IsOk());
        ExpectEqual(output, expected, What("reduce-scatter", dtype, length));
      }
    }
  });
}

TEST_P(ConformanceTest, AllToAll) {
  Run([](ProcessGroup& group) {
    for (const int64_t length : kLengths) {
      const Tensor input = Tensor::Full({group.size(), length}, group.rank());
      Tensor output = Tensor::Zeros({group.size(), length});
      ASSERT_THAT(group.AllToAll(input, output), IsOk());
      for (int i = 0; i < group.size(); ++i) {
        ExpectEqual(*output.Select(0, i), Tensor::Full({length}, i),
                    "all-to-all");
      }
    }
  });
}

TEST_P(ConformanceTest, UnevenAllToAll) {
  Run([](ProcessGroup& group) {
    // Rank i sends i * scale + j rows to rank j.
    const int64_t scale = 1000;
    std::vector<int64_t> sent;
    std::vector<int64_t> received;
    int64_t num_sent = 0;
    int64_t num_received = 0;
    for (int other = 0; other < group.size(); ++other) {
      sent.push_back(group.rank() * scale + other);
      received.push_back(other * scale + group.rank());
      num_sent += sent.back();
      num_received += received.back();
    }
    const Tensor input = Tensor::Full({num_sent, 3}, group.rank());
    Tensor output = Tensor::Full({num_received, 3}, -1);
    ASSERT_THAT(group.AllToAll(input, output, sent, received), IsOk());
    const std::vector<float> values = output.ToVector<float>();
    size_t next = 0;
    for (int from = 0; from < group.size(); ++from) {
      const auto count =
          static_cast<size_t>(received[static_cast<size_t>(from)]) * 3;
      for (size_t i = 0; i < count; ++i, ++next) {
        ASSERT_EQ(values[next], static_cast<float>(from));
      }
    }
    EXPECT_EQ(next, values.size());
    // A size that the other rank does not expect.
    if (group.size() == 1) return;
    if (group.rank() == 0) {
      --received[1];
      output = Tensor::Full({num_received - 1, 3}, -1);
    }
    EXPECT_THAT(group.AllToAll(input, output, sent, received),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("rank 1 sends")));
    EXPECT_THAT(group.Barrier(), IsOk());
  });
}

TEST_P(ConformanceTest, TensorsThatAreNotContiguous) {
  Run([](ProcessGroup& group) {
    const Tensor whole = Tensor::Full({30, 40}, group.rank());
    const Tensor column = *whole.Select(1, 5);
    ASSERT_FALSE(column.is_contiguous());
    ASSERT_THAT(group.Broadcast(column, group.size() - 1), IsOk());
    ExpectEqual(column, Tensor::Full({30}, group.size() - 1), "column");
    ExpectEqual(*whole.Select(1, 4), Tensor::Full({30}, group.rank()), "rest");
    std::vector<Tensor> outputs;
    for (int i = 0; i < group.size(); ++i) {
      outputs.push_back(*Tensor::Zeros({30, 2}).Select(1, 1));
    }
    ASSERT_THAT(group.AllGather(*whole.Select(1, 4), outputs), IsOk());
    for (int i = 0; i < group.size(); ++i) {
      ExpectEqual(outputs[static_cast<size_t>(i)], Tensor::Full({30}, i),
                  "output");
    }
  });
}

}  // namespace hawser::collectives

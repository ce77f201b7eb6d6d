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
using ::testing::AnyOf;
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

void ExpectEqual(const Tensor& actual, const Tensor& expected,
                 const std::string& what) {
  ASSERT_EQ(actual.dtype(), expected.dtype()) << what;
  // f32 and narrower averages are rounded once.
  EXPECT_EQ(actual.To(DType::kF64)->ToVector<double>(),
            expected.To(DType::kF64)->ToVector<double>())
      << what;
}

std::string What(const char* operation, DType dtype, int64_t length,
                 ReduceOp op = ReduceOp::kSum) {
  return absl::StrCat(operation, " of ", length, " ",
                      std::string(tensor::DTypeName(dtype)), " by ",
                      std::string(ReduceOpName(op)));
}

}  // namespace

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

TEST_P(ConformanceTest, BackgroundOperationsKeepTheirOrder) {
  Run([](ProcessGroup& group) {
    std::vector<Tensor> tensors;
    std::vector<Work> works;
    for (int i = 0; i < 50; ++i) {
      tensors.push_back(Tensor::Full({i % 3 == 0 ? 50'000 : 10}, i));
      works.push_back(i % 2 == 0 ? group.AllReduceAsync(tensors.back())
                                 : group.BroadcastAsync(tensors.back(), 0));
    }
    Tensor last = Tensor::Full({3}, 1);
    ASSERT_THAT(group.AllReduce(last), IsOk());
    // Blocking calls come after those of the background.
    for (const Work& work : works) {
      EXPECT_THAT(work.Wait(), IsOk());
    }
    for (int i = 0; i < 50; ++i) {
      EXPECT_EQ(tensors[static_cast<size_t>(i)].ToVector<float>()[0],
                i % 2 == 0 ? i * group.size() : i);
    }
    EXPECT_THAT(group.BarrierAsync().Wait(), IsOk());
    EXPECT_EQ(group.sequence(), 52);
  });
}

TEST_P(ConformanceTest, OperationsRunInOrderAsOne) {
  Run([](ProcessGroup& group) {
    Tensor first = Tensor::Full({4}, 1);
    const Work work = group.RunInOrder([&]() -> absl::Status {
      absl::Status status = group.AllReduce(first);
      if (!status.ok()) return status;
      // Depends on the result.
      return group.Broadcast(
          Tensor::Zeros({static_cast<int64_t>(first.data<float>()[0])}), 0);
    });
    // Comes after both.
    Tensor second = Tensor::Full({9}, group.rank());
    ASSERT_THAT(group.AllReduce(second, ReduceOp::kMax), IsOk());
    ExpectEqual(second, Tensor::Full({9}, group.size() - 1), "second");
    ASSERT_THAT(work.Wait(), IsOk());
    ExpectEqual(first, Tensor::Full({4}, group.size()), "first");
    EXPECT_THAT(
        group.RunInOrder([] { return absl::DataLossError("a reason"); }).Wait(),
        StatusIs(absl::StatusCode::kDataLoss));
    EXPECT_THAT(group.Barrier(), IsOk());
  });
}

TEST_P(ConformanceTest, MessagesAroundARing) {
  Run([](ProcessGroup& group) {
    const int right = (group.rank() + 1) % group.size();
    const int left = (group.rank() + group.size() - 1) % group.size();
    for (const int64_t length : kLengths) {
      const Tensor mine = Operand(DType::kF32, length, group.rank());
      Tensor theirs = Tensor::Zeros({length});
      const Work sent = group.SendAsync(mine, right);
      ASSERT_THAT(group.Receive(theirs, left), IsOk());
      ASSERT_THAT(sent.Wait(), IsOk());
      ExpectEqual(theirs, Operand(DType::kF32, length, left), "message");
    }
  });
}

TEST_P(ConformanceTest, MessagesByTag) {
  Run([](ProcessGroup& group) {
    const int right = (group.rank() + 1) % group.size();
    const int left = (group.rank() + group.size() - 1) % group.size();
    std::vector<Work> works;
    std::vector<Tensor> sent;
    for (uint32_t i = 0; i < 20; ++i) {
      sent.push_back(Tensor::Full({1 + i * 2000}, i));
      works.push_back(group.SendAsync(sent.back(), right, i % 4));
    }
    // By tag, from the last to the first; within a tag in order.
    for (uint32_t tag = 4; tag-- > 0;) {
      for (uint32_t i = tag; i < 20; i += 4) {
        Tensor received = Tensor::Zeros({1 + i * 2000});
        ASSERT_THAT(group.Receive(received, left, tag), IsOk());
        ExpectEqual(received, Tensor::Full({1 + i * 2000}, i), "tag");
      }
    }
    for (const Work& work : works) EXPECT_THAT(work.Wait(), IsOk());
    EXPECT_THAT(group.Barrier(), IsOk());
  });
}

TEST_P(ConformanceTest, ReceivesFromAnyRank) {
  Run([](ProcessGroup& group) {
    if (group.rank() != 0) {
      ASSERT_THAT(group.Send(Tensor::Full({100}, group.rank()), 0, 9), IsOk());
      ASSERT_THAT(group.Barrier(), IsOk());
      return;
    }
    std::vector<int> senders;
    for (int i = 1; i < group.size(); ++i) {
      Tensor received = Tensor::Zeros({100});
      const absl::StatusOr<int> from = group.ReceiveAny(received, 9);
      ASSERT_THAT(from, IsOk());
      ExpectEqual(received, Tensor::Full({100}, *from), "any");
      senders.push_back(*from);
    }
    std::sort(senders.begin(), senders.end());
    for (int i = 1; i < group.size(); ++i) {
      EXPECT_EQ(senders[static_cast<size_t>(i) - 1], i);
    }
    ASSERT_THAT(group.Barrier(), IsOk());
  });
}

TEST_P(ConformanceTest, AMessageOfAnotherSizeIsRefused) {
  Run([](ProcessGroup& group) {
    if (group.size() == 1) return;
    if (group.rank() == 0) {
      ASSERT_THAT(group.Send(Tensor::Full({10}, 1), 1), IsOk());
      ASSERT_THAT(group.Send(Tensor::Full({11}, 2), 1), IsOk());
    } else if (group.rank() == 1) {
      Tensor received = Tensor::Zeros({11});
      EXPECT_THAT(group.Receive(received, 0),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           HasSubstr("rank 0 has sent 40 bytes")));
      ASSERT_THAT(group.Receive(received, 0), IsOk());
      ExpectEqual(received, Tensor::Full({11}, 2), "second");
    }
    EXPECT_THAT(group.Barrier(), IsOk());
  });
}

TEST_P(ConformanceTest, WrongArgumentsAreRefusedAtOnce) {
  Run(
      [](ProcessGroup& group) {
        const auto refused = StatusIs(absl::StatusCode::kInvalidArgument);
        const Tensor data = Tensor::Zeros({int64_t{2} * group.size()});
        EXPECT_THAT(group.Broadcast(data, group.size()), refused);
        EXPECT_THAT(group.Broadcast(data, -1), refused);
        EXPECT_THAT(group.Broadcast(Tensor(), 0), refused);
        EXPECT_THAT(group.AllReduce(std::vector<Tensor>()), refused);
        EXPECT_THAT(group.AllReduce(data, ReduceOp::kBitAnd), refused);
        EXPECT_THAT(
            group.AllReduce({data, Tensor::Zeros({1}, {.dtype = DType::kI32})}),
            refused);
        EXPECT_THAT(
            group.AllReduce(Tensor::Zeros({1}, {.dtype = DType::kBool})),
            refused);
        EXPECT_THAT(group.AllGather(data, Tensor::Zeros({1})), refused);
        EXPECT_THAT(group.AllGather(data, std::vector<Tensor>()), refused);
        EXPECT_THAT(group.ReduceScatter(data, Tensor::Zeros({3})), refused);
        EXPECT_THAT(group.Send(data, group.size()), refused);
        EXPECT_THAT(group.Receive(data, -1), refused);
        EXPECT_THAT(group.AllToAll(data, data, {1}, {2, 3}), refused);
        if (group.rank() == 0) {
          EXPECT_THAT(group.Scatter({}, data, 0), refused);
        } else {
          EXPECT_THAT(group.Scatter({data}, data, 0), refused);
        }
        EXPECT_EQ(group.sequence(), 0);
      },
      {.timeout = absl::Seconds(20)});
}

TEST_P(ConformanceTest, DifferentCallsAreFound) {
  Run(
      [](ProcessGroup& group) {
        Tensor data = Tensor::Full({8}, 1);
        ASSERT_THAT(group.AllReduce(data), IsOk());
        ExpectEqual(data, Tensor::Full({8}, group.size()), "checked");
        if (group.size() == 1) return;
        const absl::Status status = group.rank() == group.size() - 1
                                        ? group.AllReduce(Tensor::Zeros({9}))
                                        : group.AllReduce(data, ReduceOp::kMax);
        EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("all-reduce of f32[9] by sum")));
        EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("all-reduce of f32[8] by max")));
        EXPECT_THAT(group.AllReduce(data), IsOk());
      },
      {.check_calls = true});
}

TEST_P(ConformanceTest, AMissingRankIsNamed) {
  Run(
      [](ProcessGroup& group) {
        if (group.size() == 1) return;
        // Rank 0 leaves the others alone.
        if (group.rank() == 0) return;
        Tensor data = Tensor::Zeros({8});
        EXPECT_THAT(
            group.AllReduce(data),
            AnyOf(
                StatusIs(absl::StatusCode::kDeadlineExceeded,
                         HasSubstr("rank 0")),
                StatusIs(absl::StatusCode::kAborted, HasSubstr("rank 0")),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("rank 0"))));
        EXPECT_THAT(group.AllReduce(data),
                    StatusIs(absl::StatusCode::kFailedPrecondition,
                             HasSubstr("cannot be used any more")));
        EXPECT_THAT(group.Send(data, 0),
                    StatusIs(absl::StatusCode::kFailedPrecondition));
      },
      {.timeout = absl::Milliseconds(300)});
}

TEST_P(ConformanceTest, AbortEndsAllRanks) {
  Run([](ProcessGroup& group) {
    if (group.size() == 1) return;
    Tensor data = Tensor::Zeros({8});
    ASSERT_THAT(group.Barrier(), IsOk());
    // The end of the group may overtake that of the barrier on other ranks:
    // they say that they have passed it.
    const Tensor passed = Tensor::Zeros({1});
    if (group.rank() == group.size() - 1) {
      for (int other = 0; other < group.rank(); ++other) {
        ASSERT_THAT(group.Receive(passed, other, 1), IsOk());
      }
      group.Abort(absl::UnavailableError("w7 is lost"));
      EXPECT_THAT(group.AllReduce(data),
                  StatusIs(absl::StatusCode::kFailedPrecondition));
      return;
    }
    const Work told = group.SendAsync(passed, group.size() - 1, 1);
    Tensor message = Tensor::Zeros({5});
    const Work received = group.ReceiveAsync(message, group.size() - 1);
    EXPECT_THAT(group.AllReduce(data),
                AnyOf(StatusIs(absl::StatusCode::kAborted),
                      StatusIs(absl::StatusCode::kUnavailable),
                      StatusIs(absl::StatusCode::kFailedPrecondition)));
    EXPECT_FALSE(received.Wait().ok());
    (void)told.Wait();
  });
}

}  // namespace hawser::collectives

// Several threads using one task, and several tasks over one graph.

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "async/mutex.h"
#include "async/testing/status_matchers.h"
#include "async/thread_pool.h"
#include "autograd/accumulate_grad.h"
#include "autograd/backward.h"
#include "autograd/fake_node.h"
#include "autograd/gradcheck.h"
#include "autograd/graph_task.h"
#include "autograd/ops/elementwise.h"
#include "autograd/variable.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::autograd {
namespace {

using async::IsOk;
using tensor::DType;

Tensor One() { return Tensor::Scalar(1, {DType::kF64}); }

// x^(2^depth) at x = 1, with gradient 2^depth.
Tensor Tower(const Tensor& x, int depth) {
  Tensor y = x;
  for (int i = 0; i < depth; ++i) y = *Mul(y, y);
  return y;
}

TEST(GraphTaskThreadsTest, TasksOverOneGraphRunConcurrently) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 50;
  const Tensor x = Variable({1}, {});
  const Tensor y = Tower(x, 10);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < kRounds; ++j) {
        Tensor captured;
        GraphTaskOptions options;
        options.retain_graph = true;
        options.capture = [&](const Tensor&, Tensor gradient) {
          return AddGradient(captured, std::move(gradient));
        };
        auto task = GraphTask::Create({GradEdge(y)}, {}, std::move(options));
        ASSERT_THAT(task, IsOk());
        ASSERT_THAT((*task)->Run({One()}), IsOk());
        ASSERT_THAT((*task)->done().Wait(), IsOk());
        EXPECT_EQ(*captured.item<double>(), 1024);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(GraphTaskThreadsTest, PassesAccumulateConcurrentlyIntoOneLeaf) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 50;
  const Tensor x = Variable({1}, {});
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < kRounds; ++j) {
        ASSERT_THAT(Backward(Tower(x, 4)), IsOk());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(*Grad(x).item<double>(), 16 * kThreads * kRounds);
}

TEST(GraphTaskThreadsTest, OnePassReleasesTensorsThatAnotherReads) {
  for (int round = 0; round < 50; ++round) {
    const Tensor x = Variable({1}, {});
    const Tensor y = Tower(x, 6);
    std::atomic<int> num_ok{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        const absl::Status status = Backward(y);
        if (status.ok()) {
          ++num_ok;
        } else {
          EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    // A pass adds either the whole gradient or nothing.
    const int delivered = num_ok.load();
    EXPECT_EQ(Grad(x).defined(), delivered > 0);
    if (delivered > 0) {
      EXPECT_EQ(*Grad(x).item<double>(), 64 * delivered);
    }
  }
}

TEST(GraphTaskThreadsTest, ThreadsFeedSkipAndStartOneTask) {
  constexpr int kSends = 8;
  async::ThreadPool pool({.num_threads = 2});
  for (int round = 0; round < 100; ++round) {
    const Tensor leaf = Variable({0}, {});
    std::vector<std::shared_ptr<Node>> sends;
    for (int i = 0; i < kSends; ++i) {
      sends.push_back(
          std::make_shared<FakeNode>("send", std::vector{GradEdge(leaf)}));
    }
    const auto root =
        std::make_shared<FakeNode>("root", std::vector{GradEdge(leaf)});
    GraphTaskOptions options;
    if (round % 2 == 1) options.executor = &pool;
    auto task = *GraphTask::Create({{root, 0}}, sends, std::move(options));
    std::vector<std::thread> threads;
    for (int first : {0, 1, 2}) {
      threads.emplace_back([&, first] {
        for (int i = first; i < kSends; i += 3) {
          if (i % 2 == 0) {
            EXPECT_THAT(task->Feed(sends[i], {One()}), IsOk());
          } else {
            EXPECT_THAT(task->Skip(sends[i]), IsOk());
          }
        }
      });
    }
    EXPECT_THAT(task->Run({One()}), IsOk());
    for (std::thread& thread : threads) thread.join();
    EXPECT_THAT(task->done().Wait(), IsOk());
    EXPECT_EQ(*Grad(leaf).item<double>(), 1 + kSends / 2);
  }
}

TEST(GraphTaskThreadsTest, FailRacesWithFeed) {
  for (int round = 0; round < 100; ++round) {
    const Tensor leaf = Variable({0}, {});
    const auto send =
        std::make_shared<FakeNode>("send", std::vector{GradEdge(leaf)});
    auto task = *GraphTask::Create({}, {send});
    std::thread feeder([&] {
      EXPECT_THAT(task->Run({}), IsOk());
      EXPECT_THAT(task->Feed(send, {One()}), IsOk());
    });
    task->Fail(absl::AbortedError("lost"));
    feeder.join();
    const absl::Status result = task->done().Wait();
    EXPECT_TRUE(result.ok() || result.code() == absl::StatusCode::kAborted);
    EXPECT_TRUE(!result.ok() || Grad(leaf).defined());
  }
}

}  // namespace
}  // namespace hawser::autograd

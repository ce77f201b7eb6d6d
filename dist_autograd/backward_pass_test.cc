// Backward passes over random graphs distributed over several workers, compared
// with a local pass over the same graph. Gradient messages are repeated and
// reordered, also while another one is being received.

#include "dist_autograd/backward_pass.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "async/future.h"
#include "async/random_source.h"
#include "async/testing/nightly.h"
#include "async/testing/status_matchers.h"
#include "autograd/backward.h"
#include "autograd/node.h"
#include "autograd/ops/elementwise.h"
#include "autograd/variable.h"
#include "dist_autograd/context.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/errors/error_detail.h"
#include "rpc/identity/worker_info.h"
#include "rpc/identity/worker_run.h"
#include "rref/wire_ids.h"
#include "tensor/tensor.h"

namespace hawser::dist_autograd {
namespace {

using async::IsOk;
using async::StatusIs;

constexpr ContextId kContext{1};
const uint64_t kSeeds = async::NightlyOr(20'000, 300);

rpc::WorkerInfo WorkerOf(int i) {
  return {"w" + std::to_string(i), rpc::WorkerId(i), rpc::Incarnation{1}, ""};
}

rpc::WorkerRun RunOfWorker(int i) { return RunOf(WorkerOf(i)); }

Tensor Leaf(double value) {
  Tensor leaf = Tensor::Full({1}, value, {.dtype = tensor::DType::kF64});
  EXPECT_THAT(autograd::SetRequiresGrad(leaf), IsOk());
  return leaf;
}

// Workers with one context, and the messages between them.
class Cluster {
 public:
  Cluster(int num_workers, uint64_t seed) : random_(seed) {
    for (int i = 0; i < num_workers; ++i) {
      contexts_.push_back(std::make_shared<Context>(kContext, RunOfWorker(0)));
    }
  }
  ~Cluster() {
    for (const auto& context : contexts_) (void)context->Release();
  }

  Context& context(int i) { return *contexts_[i]; }
  async::RandomSource& random() { return random_; }
  bool Chance(double p) { return random_.Uniform() < p; }

  // Sends a forward message; returns the tensor that `to` receives for `t`.
  Tensor Transfer(int from, int to, const Tensor& t) {
    const AutogradMessageId message{++last_message_};
    contexts_[from]->AddTarget(WorkerOf(to));
    contexts_[to]->AddSource(WorkerOf(from));
    contexts_[from]->RecordSend(message, WorkerOf(to), {t});
    if (lose_next_) {
      lose_next_ = false;
      return Tensor();
    }
    Tensor received = *t.Detach().Clone();
    contexts_[to]->RecordRecv(message, WorkerOf(from), {received});
    return received;
  }
  // The next forward message does not arrive.
  void LoseNext() { lose_next_ = true; }

  async::Future<void> Backward(int root_worker, const Tensor& root, bool smart,
                               bool retain = false) {
    BackwardPassOptions options;
    options.id = {kContext, RunOfWorker(root_worker), ++last_pass_};
    options.smart = smart;
    options.retain_graph = retain;
    auto pass =
        BackwardPass::Create(contexts_[root_worker], options, {root},
                             std::make_shared<Transport>(*this, root_worker));
    EXPECT_THAT(pass, IsOk());
    EXPECT_THAT(contexts_[root_worker]->BeginPass(*pass), IsOk());
    async::Future<void> done = (*pass)->done();
    (*pass)->Start({Tensor::Ones({1}, {.dtype = tensor::DType::kF64})});
    return done;
  }

  // Makes `worker` take part in the first pass of worker 0, from its beginning.
  std::shared_ptr<BackwardPass> Join(int worker) {
    BackwardPassOptions options;
    options.id = {kContext, RunOfWorker(0), 1};
    auto joined = contexts_[worker]->JoinPass(
        options, [&] { return std::make_shared<Transport>(*this, worker); });
    EXPECT_THAT(joined, IsOk());
    return joined->pass;
  }

  // Adds the origin that a worker adds to an error that it reports.
  static absl::Status WithOrigin(int worker, const absl::Status& error) {
    return rpc::WithErrorDetail(error, WorkerOf(worker),
                                /*maybe_applied=*/false);
  }

  // Delivers all messages, in random order.
  void Run() {
    while (!events_.empty()) RunOne();
  }

  int num_gradient_messages() const { return num_gradient_messages_; }
  // The next gradient message to `worker` fails as if it were lost.
  void FailNextTo(int worker) { fail_to_ = worker; }

 private:
  class Transport final : public BackwardPassTransport {
   public:
    Transport(Cluster& cluster, int from) : cluster_(cluster), from_(from) {}

    async::Future<void> SendGradients(const rpc::WorkerRun& to,
                                      v1::GradientRequest request,
                                      std::vector<Tensor> tensors) override {
      return cluster_.Send(from_, to.id.value(), std::move(request),
                           std::move(tensors));
    }
    void SendAbort(const rpc::WorkerRun& to, const v1::BackwardPassId& pass,
                   const absl::Status& error) override {
      cluster_.events_.push_back([&cluster = cluster_, to,
                                  options = OptionsOf(pass),
                                  named = cluster_.WithOrigin(from_, error)] {
        Context& context = *cluster.contexts_[to.id.value()];
        if (auto joined = context.RefusePass(options.id, named)) {
          joined->Fail(named);
        }
      });
    }

   private:
    Cluster& cluster_;
    const int from_;
  };

  void RunOne() {
    const size_t i = random_.Below(events_.size());
    std::function<void()> event = std::move(events_[i]);
    events_.erase(events_.begin() + i);
    event();
  }
  // Lets the delivering thread stall while others run.
  void StandStill() {
    if (!Chance(0.1)) return;
    for (uint64_t n = random_.Below(30); n > 0 && !events_.empty(); --n) {
      RunOne();
    }
  }

  static BackwardPassOptions OptionsOf(const v1::BackwardPassId& proto) {
    BackwardPassOptions options;
    options.id = {ContextId{proto.context()}, rref::FromProto(proto.root()),
                  proto.number()};
    options.retain_graph = proto.retain_graph();
    options.smart = proto.smart();
    return options;
  }

  async::Future<void> Send(int from, int to, v1::GradientRequest request,
                           std::vector<Tensor> tensors) {
    ++num_gradient_messages_;
    if (fail_to_ == to) {
      fail_to_ = -1;
      return async::MakeReadyFuture<void>(WithOrigin(
          to, absl::UnavailableError("w" + std::to_string(to) + " is gone")));
    }
    auto promise = std::make_shared<async::Promise<void>>();
    async::Future<void> answer = promise->future();
    const int copies = Chance(0.3) ? 2 : 1;
    for (int i = 0; i < copies; ++i) {
      // Separate copies, as a network would make.
      std::vector<Tensor> copied;
      for (const Tensor& t : tensors) copied.push_back(*t.Detach().Clone());
      events_.push_back([this, from, to, request, promise,
                         copied = std::move(copied)]() mutable {
        Deliver(from, to, request, std::move(copied))
            .OnReady([this, to, promise](const absl::Status& status) {
              events_.push_back([promise, named = WithOrigin(to, status)] {
                promise->Set(named);
              });
            });
      });
    }
    return answer;
  }

  async::Future<void> Deliver(int from, int to,
                              const v1::GradientRequest& request,
                              std::vector<Tensor> tensors) {
    auto joined = contexts_[to]->JoinPass(OptionsOf(request.pass()), [&] {
      StandStill();
      return std::make_shared<Transport>(*this, to);
    });
    if (!joined.ok()) return async::MakeReadyFuture<void>(joined.status());
    StandStill();
    if (joined->is_new) joined->pass->Start({});
    StandStill();
    return joined->pass->Receive(RunOfWorker(from), request, std::move(tensors),
                                 joined->is_new);
  }

  async::RandomSource random_;
  std::vector<std::shared_ptr<Context>> contexts_;
  std::vector<std::function<void()>> events_;
  uint64_t last_message_ = 0;
  uint64_t last_pass_ = 0;
  int num_gradient_messages_ = 0;
  int fail_to_ = -1;
  bool lose_next_ = false;
};

// A value on a worker, and the same value computed locally.
struct Value {
  int worker;
  Tensor distributed;
  Tensor local;
};

void CompareRandomGraph(uint64_t seed, bool unused, bool smart) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  constexpr int kWorkers = 4;
  Cluster cluster(kWorkers, seed);
  std::vector<Value> leaves;
  for (int i = 0; i < kWorkers; ++i) {
    const double number = 0.5 + cluster.random().Uniform();
    leaves.push_back({i, Leaf(number), Leaf(number)});
  }
  std::vector<Value> values = leaves;
  for (int step = 0; step < 25; ++step) {
    Value a = values[cluster.random().Below(values.size())];
    const Value& b = values[cluster.random().Below(values.size())];
    if (a.worker != b.worker) {
      a.distributed = cluster.Transfer(a.worker, b.worker, a.distributed);
      a.worker = b.worker;
    }
    const bool mul = cluster.Chance(0.5);
    auto combine = [&](const Tensor& x, const Tensor& y) {
      return mul ? *autograd::Mul(x, y) : *autograd::Add(x, y);
    };
    values.push_back({b.worker, combine(a.distributed, b.distributed),
                      combine(a.local, b.local)});
  }
  // Either all values or only the last one lead to the root.
  Value root = values.back();
  if (!unused) {
    for (const Value& value : values) {
      Tensor here =
          value.worker == root.worker
              ? value.distributed
              : cluster.Transfer(value.worker, root.worker, value.distributed);
      root.distributed = *autograd::Add(root.distributed, here);
      root.local = *autograd::Add(root.local, value.local);
    }
  }
  if (autograd::IsLeaf(root.distributed)) return;

  async::Future<void> done =
      cluster.Backward(root.worker, root.distributed, smart);
  done.OnReady([&](const absl::Status&) {
    for (int i = 0; i < kWorkers; ++i) {
      EXPECT_EQ(cluster.context(i).pass(), nullptr) << "worker " << i;
    }
  });
  cluster.Run();
  std::string stuck;
  for (int i = 0; i < kWorkers; ++i) {
    if (const std::shared_ptr<BackwardPass> pass = cluster.context(i).pass()) {
      stuck += "worker " + std::to_string(i) + " awaits [" +
               pass->DescribeMissing() + "] ";
    }
  }
  ASSERT_TRUE(done.ready()) << stuck;
  ASSERT_THAT(done.result(), IsOk());
  ASSERT_THAT(autograd::Backward(root.local), IsOk());
  for (const Value& leaf : leaves) {
    const Tensor actual =
        cluster.context(leaf.worker).gradient(leaf.distributed);
    const Tensor expected = autograd::Grad(leaf.local);
    if (!expected.defined()) {
      EXPECT_FALSE(actual.defined()) << "worker " << leaf.worker;
      continue;
    }
    ASSERT_TRUE(actual.defined()) << "worker " << leaf.worker;
    EXPECT_NEAR(*actual.item<double>(), *expected.item<double>(),
                1e-9 * std::abs(*expected.item<double>()));
    EXPECT_FALSE(autograd::Grad(leaf.distributed).defined());
  }
}

TEST(BackwardPassTest, SmartPassWithUnusedMessagesGivesTheLocalGradients) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    CompareRandomGraph(seed, /*unused=*/true, /*smart=*/true);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(BackwardPassTest, SmartPassWithUsedMessagesGivesTheLocalGradients) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    CompareRandomGraph(seed, /*unused=*/false, /*smart=*/true);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(BackwardPassTest, FastPassWithUsedMessagesGivesTheLocalGradients) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    CompareRandomGraph(seed, /*unused=*/false, /*smart=*/false);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(BackwardPassTest, FastPassNamesTheAwaitedUnusedMessage) {
  Cluster cluster(2, 1);
  const Tensor leaf = Leaf(2);
  const Tensor used = cluster.Transfer(1, 0, leaf);
  const Tensor unused = cluster.Transfer(1, 0, leaf);
  async::Future<void> done =
      cluster.Backward(0, *autograd::Mul(used, used), /*smart=*/false);
  cluster.Run();
  EXPECT_FALSE(done.ready());
  ASSERT_NE(cluster.context(1).pass(), nullptr);
  EXPECT_EQ(cluster.context(1).pass()->DescribeMissing(), "0:2 to worker 0");
  cluster.context(0).pass()->Fail(absl::DeadlineExceededError("late"));
  cluster.Run();
  EXPECT_THAT(done.result(), StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_EQ(cluster.context(1).pass(), nullptr);
}

TEST(BackwardPassTest, SmartPassSendsNoExtraMessages) {
  for (const bool smart : {true, false}) {
    Cluster cluster(3, 1);
    const Tensor leaf = Leaf(2);
    // A call from 0 to 1, which calls 2.
    const Tensor at1 = cluster.Transfer(0, 1, leaf);
    const Tensor at2 = cluster.Transfer(1, 2, *autograd::Mul(at1, at1));
    const Tensor answer = cluster.Transfer(2, 1, *autograd::Mul(at2, at2));
    const Tensor back = cluster.Transfer(1, 0, answer);
    async::Future<void> done =
        cluster.Backward(0, *autograd::Mul(back, back), smart);
    cluster.Run();
    ASSERT_THAT(done.result(), IsOk());
    EXPECT_EQ(cluster.num_gradient_messages(), 4) << (smart ? "smart" : "fast");
  }
}

TEST(BackwardPassTest, ForwardMessageThatHasNotArrivedIsNotWaitedFor) {
  Cluster cluster(2, 1);
  const Tensor leaf = Leaf(2);
  const Tensor used = cluster.Transfer(1, 0, leaf);
  cluster.LoseNext();
  (void)cluster.Transfer(1, 0, leaf);
  const Tensor own = Leaf(3);
  cluster.LoseNext();
  (void)cluster.Transfer(0, 1, own);
  async::Future<void> done =
      cluster.Backward(0, *autograd::Mul(used, own), /*smart=*/true);
  cluster.Run();
  ASSERT_TRUE(done.ready());
  EXPECT_THAT(done.result(), IsOk());
  EXPECT_EQ(*cluster.context(1).gradient(leaf).item<double>(), 3);
}

TEST(BackwardPassTest, PassesOfOneContextAddUp) {
  Cluster cluster(2, 1);
  const Tensor leaf = Leaf(2);
  const Tensor here = cluster.Transfer(1, 0, leaf);
  const Tensor root = *autograd::Mul(here, here);
  for (const bool retain : {true, false}) {
    async::Future<void> done = cluster.Backward(0, root, true, retain);
    cluster.Run();
    ASSERT_THAT(done.result(), IsOk());
  }
  EXPECT_EQ(*cluster.context(1).gradient(leaf).item<double>(), 8);
}

TEST(BackwardPassTest, SecondPassOverAFreedGraphFailsWithTheWorker) {
  Cluster cluster(2, 1);
  const Tensor leaf = Leaf(2);
  const Tensor at1 = cluster.Transfer(0, 1, leaf);
  const Tensor back = cluster.Transfer(1, 0, *autograd::Mul(at1, at1));
  const Tensor root = *autograd::Add(back, back);
  async::Future<void> first = cluster.Backward(0, root, true);
  cluster.Run();
  ASSERT_THAT(first.result(), IsOk());
  async::Future<void> second = cluster.Backward(0, root, true);
  cluster.Run();
  ASSERT_TRUE(second.ready());
  EXPECT_THAT(second.result(), StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(*cluster.context(0).gradient(leaf).item<double>(), 8);
}

TEST(BackwardPassTest, FailureEndsThePassEverywhere) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Cluster cluster(4, seed);
    const Tensor leaf = Leaf(2);
    Tensor t = leaf;
    for (int i = 1; i < 4; ++i) {
      t = cluster.Transfer(i - 1, i, *autograd::Mul(t, t));
    }
    // Worker 3 also waits for worker 0, which will not send anything.
    t = cluster.Transfer(3, 0, *autograd::Mul(t, t));
    cluster.FailNextTo(1);
    async::Future<void> done = cluster.Backward(0, *autograd::Mul(t, t), true);
    cluster.Run();
    ASSERT_TRUE(done.ready());
    EXPECT_THAT(done.result(), StatusIs(absl::StatusCode::kUnavailable,
                                        testing::HasSubstr("w1 is gone")));
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(cluster.context(i).pass(), nullptr) << "worker " << i;
    }
  }
}

class FailingNode final : public autograd::Node {
 public:
  explicit FailingNode(autograd::Edge edge) : Node({std::move(edge)}) {}
  std::string_view name() const override { return "FailingNode"; }
  absl::StatusOr<std::vector<Tensor>> Apply(std::vector<Tensor>) override {
    return absl::DataLossError("broken on purpose");
  }
};

// Whichever path the failure takes to the root worker first.
TEST(BackwardPassTest, FailureNamesItsOrigin) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Cluster cluster(4, seed);
    const Tensor leaf = Leaf(2);
    // From each worker to each other worker, and through worker 2.
    std::vector<Tensor> at{leaf};
    for (int i = 1; i < 4; ++i) {
      at.push_back(cluster.Transfer(0, i, leaf));
      for (int j = 1; j < i; ++j) {
        at[i] = *autograd::Mul(at[i], cluster.Transfer(j, i, at[j]));
      }
      if (i == 2) {
        const Tensor broken = *at[2].Detach().Clone();
        autograd::SetHistory(
            broken, std::make_shared<FailingNode>(autograd::GradEdge(at[2])),
            0);
        at[2] = broken;
      }
    }
    Tensor root = leaf;
    for (int i = 1; i < 4; ++i) {
      root = *autograd::Mul(root, cluster.Transfer(i, 0, at[i]));
    }
    async::Future<void> done = cluster.Backward(0, root, true);
    cluster.Run();
    ASSERT_TRUE(done.ready());
    EXPECT_THAT(done.result(), StatusIs(absl::StatusCode::kDataLoss));
    const auto detail = rpc::GetErrorDetail(done.result());
    ASSERT_TRUE(detail.has_value());
    EXPECT_EQ(detail->worker, "w2");
  }
}

// The message arrives while the pass fails.
TEST(BackwardPassTest, MessageOfAFailedPassGetsItsError) {
  Cluster cluster(2, 1);
  const Tensor here = cluster.Transfer(1, 0, Leaf(2));
  const std::shared_ptr<BackwardPass> pass = cluster.Join(1);
  pass->Start({});
  v1::GradientRequest request;
  request.set_sequence(1);
  const async::Future<void> first =
      pass->Receive(RunOfWorker(0), request, {}, /*begins=*/false);
  pass->Fail(absl::DataLossError("broken on purpose"));
  EXPECT_THAT(first.result(), StatusIs(absl::StatusCode::kDataLoss));
  request.set_sequence(2);
  v1::MessageGradients& entry = *request.add_gradients();
  entry.set_message(99);
  entry.add_present(false);
  EXPECT_THAT(pass->Receive(RunOfWorker(0), request, {}, false).result(),
              StatusIs(absl::StatusCode::kDataLoss));
}

// The context of a restarted worker has messages of both incarnations.
TEST(BackwardPassTest, GradientOfAnotherIncarnationIsRefused) {
  Cluster cluster(2, 1);
  const Tensor here = cluster.Transfer(1, 0, Leaf(2));
  const std::shared_ptr<BackwardPass> pass = cluster.Join(1);
  pass->Start({});
  v1::GradientRequest request;
  request.set_sequence(1);
  v1::MessageGradients& entry = *request.add_gradients();
  entry.set_message(1);
  entry.add_present(false);
  const rpc::WorkerRun again{rpc::WorkerId(0), rpc::Incarnation{2}};
  EXPECT_THAT(pass->Receive(again, request, {}, true).result(),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

// One message makes the worker take part. Another one brings all awaited
// gradients before the first has been received.
TEST(BackwardPassTest, PartDoesNotEndBeforeItsMessagesAreSent) {
  Cluster cluster(3, 1);
  const Tensor used = cluster.Transfer(1, 0, Leaf(2));
  const Tensor unused = cluster.Transfer(2, 1, Leaf(2));
  const std::shared_ptr<BackwardPass> pass = cluster.Join(1);
  v1::GradientRequest gradient;
  gradient.set_sequence(1);
  v1::MessageGradients& entry = *gradient.add_gradients();
  entry.set_message(1);
  entry.add_present(false);
  const async::Future<void> answer =
      pass->Receive(RunOfWorker(0), gradient, {}, /*begins=*/false);
  pass->Start({});
  EXPECT_FALSE(answer.ready());

  v1::GradientRequest news;
  news.set_sequence(1);
  news.mutable_manifest()->add_expected(2);
  (void)pass->Receive(RunOfWorker(2), news, {}, /*begins=*/true);
  // Worker 2 does not know yet that it gets no gradient.
  EXPECT_EQ(cluster.num_gradient_messages(), 1);
  EXPECT_FALSE(answer.ready());
  cluster.Run();
  EXPECT_THAT(answer.result(), IsOk());
}

TEST(BackwardPassTest, PassWaitsForTheWorkOfItsNodes) {
  for (const bool succeeds : {true, false}) {
    Cluster cluster(2, 1);
    const Tensor leaf = Leaf(2);
    const Tensor here = cluster.Transfer(1, 0, leaf);
    async::Promise<void> work;
    ASSERT_THAT(autograd::RegisterPostAccumulateHook(
                    leaf,
                    [&](const Tensor&) {
                      return cluster.context(1).AddWork(work.future());
                    }),
                IsOk());
    std::vector<absl::Status> failures;
    cluster.context(0).OnFailedPass(
        [&](const absl::Status& error) { failures.push_back(error); });
    async::Future<void> done =
        cluster.Backward(0, *autograd::Mul(here, here), /*smart=*/true);
    cluster.Run();
    EXPECT_FALSE(done.ready());
    work.Set(succeeds ? absl::OkStatus() : absl::DataLossError("lost"));
    cluster.Run();
    ASSERT_TRUE(done.ready());
    if (succeeds) {
      EXPECT_THAT(done.result(), IsOk());
      EXPECT_TRUE(failures.empty());
    } else {
      EXPECT_THAT(done.result(), StatusIs(absl::StatusCode::kDataLoss));
      ASSERT_EQ(failures.size(), 1u);
      EXPECT_THAT(failures[0], StatusIs(absl::StatusCode::kDataLoss));
    }
  }
}

TEST(BackwardPassTest, WorkOutsideOfAPassIsRefused) {
  Cluster cluster(1, 1);
  EXPECT_THAT(cluster.context(0).AddWork(
                  async::MakeReadyFuture<void>(absl::OkStatus())),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(BackwardPassTest, GradientForAForeignMessageIsRefused) {
  Cluster cluster(2, 1);
  const Tensor leaf = Leaf(2);
  const Tensor here = cluster.Transfer(1, 0, leaf);
  const std::shared_ptr<BackwardPass> pass = cluster.Join(1);
  pass->Start({});
  v1::GradientRequest request;
  request.set_sequence(1);
  v1::MessageGradients& entry = *request.add_gradients();
  entry.set_message(99);
  entry.add_present(false);
  EXPECT_THAT(pass->Receive(RunOfWorker(0), request, {}, true).result(),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST(BackwardPassTest, GradientOfAnotherShapeIsRefused) {
  Cluster cluster(2, 1);
  const Tensor leaf = Leaf(2);
  const Tensor here = cluster.Transfer(1, 0, leaf);
  const std::shared_ptr<BackwardPass> pass = cluster.Join(1);
  pass->Start({});
  v1::GradientRequest request;
  request.set_sequence(1);
  v1::MessageGradients& entry = *request.add_gradients();
  entry.set_message(1);
  entry.add_present(true);
  EXPECT_THAT(
      pass->Receive(RunOfWorker(0), request,
                    {Tensor::Zeros({2}, {.dtype = tensor::DType::kF64})}, true)
          .result(),
      StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace hawser::dist_autograd

// Fuzz test: sequences of calls and replies of a hostile member of the job, to
// and from a whole agent that meanwhile uses that member.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/check.h"
#include "async/coroutine.h"
#include "async/future.h"
#include "async/testing/manual_executor.h"
#include "async/testing/simulated_clock.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/variable.h"
#include "bazel/fuzz/fuzz_input.h"
#include "dist_autograd/context.h"
#include "dist_autograd/dist_autograd.h"
#include "dist_autograd/dist_autograd_service.h"
#include "dist_autograd/engine.h"
#include "dist_optim/dist_optim_service.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/agent_options.h"
#include "rpc/agent/current_call.h"
#include "rpc/functions/function.h"
#include "rpc/functions/function_registry.h"
#include "rpc/identity/worker_info.h"
#include "rpc/inproc/network.h"
#include "rpc/membership/membership_log.h"
#include "rpc/stream/register_stream.h"
#include "rpc/stream/stream.h"
#include "rpc/stream/stream_function.h"
#include "rpc/stream/stream_service.h"
#include "rpc/testing/simulated_store_link.h"
#include "rpc/transport/cancellation.h"
#include "rref/rref.h"
#include "rref/rref_service.h"
#include "rref/wire_ids.h"
#include "store/hash/store.h"
#include "tensor/tensor.h"
#include "tests/fuzz/hostile_member.h"

namespace hawser::tests {
namespace {

using ::hawser::async::Future;
using ::hawser::tensor::Tensor;

constexpr rpc::Function<int64_t(int64_t)> kEcho{"Echo"};
constexpr rpc::Function<void()> kHold{"Hold"};
constexpr rpc::Function<int64_t(int64_t)> kCallBack{"CallBack"};
constexpr rpc::Function<Tensor()> kMakeLeaf{"MakeLeaf"};
constexpr rpc::Function<Tensor(Tensor, Tensor)> kMul{"Mul"};
constexpr rpc::Function<int64_t(rref::RRef<int64_t>)> kKeepNumber{"KeepNumber"};
constexpr rpc::Function<int64_t(rref::RRef<Tensor>)> kKeepTensor{"KeepTensor"};
constexpr rpc::StreamFunction<int64_t(int64_t)> kCount{"Count"};

constexpr size_t kMaxKept = 16;
constexpr absl::Duration kTick = absl::Milliseconds(500);
constexpr absl::Duration kSilentLimit = absl::Seconds(3);

// One agent, with all services, that uses the hostile member.
class Run {
 public:
  explicit Run(fuzz::FuzzInput input) : input_(input) {
    RegisterFunctions();
    rpc::AgentOptions options;
    options.name = "w0";
    options.rank = 0;
    options.store = &link_;
    options.transport = network_.NewTransport();
    options.registry = &registry_;
    options.clock = &clock_;
    options.executor = &executor_;
    options.start_timeout = absl::ZeroDuration();
    options.liveness.silent_limit = kSilentLimit;
    options.limits.max_calls_per_peer = 8;
    options.services.push_back(std::make_unique<rpc::StreamService>(
        rpc::StreamLimits{.max_streams_per_reader = 4}));
    options.services.push_back(std::make_unique<rref::RRefService>(
        rref::RRefOptions{.audit_interval = absl::Seconds(2),
                          .tombstones = 4,
                          .limits = {.max_references_per_peer = 8}}));
    options.services.push_back(
        std::make_unique<dist_autograd::DistAutogradService>(
            dist_autograd::DistAutogradOptions{
                .limits = {.max_contexts = 16, .max_contexts_per_peer = 4}}));
    options.services.push_back(
        std::make_unique<dist_optim::DistOptimService>());
    auto agent = rpc::Agent::Start(std::move(options));
    HAWSER_CHECK(agent.ok()) << agent.status();
    agent_ = *std::move(agent);
    engine_ = agent_->service<dist_autograd::DistAutogradService>()->engine();
    peer_.SetVictim(agent_->info());
    // The events of both have been read.
    Advance(2 * kTick);
  }

  ~Run() { agent_.reset(); }

  void Play() {
    while (!input_.empty()) {
      Step();
      executor_.RunAll();
    }
    Finish();
  }

 private:
  void RegisterFunctions();
  void Step();
  void UsePeer(size_t action);
  void Finish();
  void Check(const std::string& counter, const std::string& value) const;
  void CheckThatItServes();

  void Advance(absl::Duration time) {
    for (absl::Duration t; t < time; t += kTick) {
      clock_.AdvanceBy(kTick);
      executor_.RunAll();
    }
  }

  // The slot of an object that an action makes or uses.
  template <class T>
  T& Pick(std::vector<T>& objects) {
    return objects[input_.Below(objects.size())];
  }

  // Declared before all that uses it.
  fuzz::FuzzInput input_;
  async::ManualExecutor executor_;
  async::SimulatedClock clock_;
  rpc::InprocNetwork network_{{.executor = &executor_, .clock = &clock_}};
  store::HashStore store_{{.clock = &clock_}};
  rpc::SimulatedStoreLink link_{&store_};
  rpc::FunctionRegistry registry_;
  HostileMember peer_{{.input = &input_,
                       .network = &network_,
                       .store = &store_,
                       .functions = &registry_}};
  std::unique_ptr<rpc::Agent> agent_;
  std::shared_ptr<dist_autograd::Engine> engine_;

  // Kept by functions that the peer calls.
  std::vector<rref::RRef<int64_t>> kept_numbers_;
  std::vector<rref::RRef<Tensor>> kept_tensors_;
  std::vector<rpc::Cancellation::Registration> holds_;
  // In slots: the agent's own use of the peer.
  std::vector<rref::RRef<int64_t>> numbers_{3};
  std::vector<rref::RRef<Tensor>> tensors_{3};
  std::vector<std::shared_ptr<dist_autograd::Context>> contexts_{2};
  std::vector<Future<Tensor>> products_{3};
  std::optional<rpc::StreamReader<int64_t>> reader_;
  std::vector<Future<void>> passes_;
};

void Run::RegisterFunctions() {
  absl::Status status;
  status.Update(registry_.Register(kEcho, [](int64_t x) { return x; }));
  // Ends when it is cancelled.
  status.Update(registry_.Register(kHold, [this] {
    async::Promise<void> promise;
    Future<void> future = promise.future();
    holds_.push_back(rpc::CurrentCall::Get()->cancellation().OnCancel(
        [promise = std::move(promise)]() mutable {
          promise.Set(absl::CancelledError("given up"));
        }));
    return future;
  }));
  status.Update(registry_.Register(kCallBack, [this](int64_t x) {
    return agent_->Async(peer_.info(), kEcho, x);
  }));
  status.Update(registry_.Register(kMakeLeaf, [] {
    const Tensor leaf = Tensor::Ones({2});
    HAWSER_CHECK(autograd::SetRequiresGrad(leaf).ok());
    return leaf;
  }));
  status.Update(registry_.Register(kMul, [](const Tensor& a, const Tensor& b) {
    return autograd::Mul(a, b);
  }));
  status.Update(
      registry_.Register(kKeepNumber, [this](rref::RRef<int64_t> number) {
        if (kept_numbers_.size() < kMaxKept) {
          kept_numbers_.push_back(std::move(number));
        }
        return int64_t{0};
      }));
  status.Update(
      registry_.Register(kKeepTensor, [this](rref::RRef<Tensor> tensor) {
        if (kept_tensors_.size() < kMaxKept) {
          kept_tensors_.push_back(std::move(tensor));
        }
        return int64_t{0};
      }));
  status.Update(rpc::RegisterStream(
      registry_, kCount,
      [](rpc::StreamWriter<int64_t> out, int64_t count) -> Future<void> {
        absl::Status written;
        for (int64_t i = 0; i < count && written.ok(); ++i) {
          written = co_await out.Write(i);
        }
        co_return written;
      }));
  HAWSER_CHECK(status.ok()) << status;
}

void Run::UsePeer(size_t action) {
  const rpc::WorkerInfo& peer = peer_.info();
  switch (action) {
    case 0: {
      auto made = rref::Remote(*agent_, peer, kEcho, 1);
      if (!made.ok()) break;
      peer_.LearnReference(rref::ToProto(made->reference()->id()));
      peer_.LearnReference(rref::ToProto(made->reference()->fork()));
      Pick(numbers_) = *std::move(made);
      break;
    }
    case 1: {
      auto made = rref::Remote(*agent_, peer, kMakeLeaf);
      if (!made.ok()) break;
      peer_.LearnReference(rref::ToProto(made->reference()->id()));
      Pick(tensors_) = *std::move(made);
      break;
    }
    case 2: {
      const Tensor leaf = Tensor::Ones({2});
      HAWSER_CHECK(autograd::SetRequiresGrad(leaf).ok());
      auto made = rref::MakeLocal(*agent_, leaf);
      if (!made.ok()) break;
      peer_.LearnReference(rref::ToProto(made->reference()->id()));
      Pick(tensors_) = *std::move(made);
      break;
    }
    case 3: {
      const rref::RRef<int64_t>& number = Pick(numbers_);
      if (number.valid()) {
        (void)number.ToHereAsync();
        (void)agent_->Async(peer, kKeepNumber, number);
      }
      break;
    }
    case 4: {
      const rref::RRef<Tensor>& tensor = Pick(tensors_);
      if (tensor.valid()) {
        (void)tensor.ToHereAsync();
        (void)agent_->Async(peer, kKeepTensor, tensor);
      }
      break;
    }
    case 5:
      Pick(numbers_) = {};
      Pick(tensors_) = {};
      break;
    case 6: {
      std::shared_ptr<dist_autograd::Context>& context = Pick(contexts_);
      if (context != nullptr) {
        engine_->ReleaseContext(context->id());
        context.reset();
        break;
      }
      auto made = engine_->CreateContext();
      if (!made.ok()) break;
      context = *made;
      peer_.LearnContext(ToNumber(context->id()));
      break;
    }
    case 7: {
      const std::shared_ptr<dist_autograd::Context>& context = Pick(contexts_);
      if (context == nullptr) break;
      const dist_autograd::Engine::CurrentContext current(context);
      const Tensor leaf = Tensor::Ones({2});
      HAWSER_CHECK(autograd::SetRequiresGrad(leaf).ok());
      Pick(products_) = agent_->Async(peer, kMul, leaf, leaf);
      break;
    }
    case 8: {
      const std::shared_ptr<dist_autograd::Context>& context = Pick(contexts_);
      const Future<Tensor>& product = Pick(products_);
      if (context == nullptr || !product.valid() || !product.ready()) break;
      const absl::StatusOr<Tensor>& result = product.result();
      if (!result.ok()) break;
      const absl::StatusOr<Tensor> root = autograd::Sum(*result);
      if (!root.ok()) break;
      passes_.push_back(
          dist_autograd::BackwardAsync(*agent_, context->id(), {*root}));
      break;
    }
    case 9: {
      auto reader = rpc::Stream(*agent_, peer, kCount, 3);
      if (reader.ok()) reader_ = *std::move(reader);
      break;
    }
    case 10:
      if (reader_.has_value()) (void)reader_->Next();
      break;
    default:
      reader_.reset();
      break;
  }
}

void Run::Step() {
  const size_t action = input_.Below(32);
  if (action < 14) {
    peer_.CallMethod();
  } else if (action < 26) {
    UsePeer(action - 14);
  } else if (action == 26) {
    peer_.CancelCall();
  } else if (action == 27) {
    peer_.ReplyLater();
  } else if (action == 28) {
    network_.Break(peer_.info().address, agent_->info().address);
  } else if (action == 29) {
    kept_numbers_.clear();
    kept_tensors_.clear();
  } else if (action == 30) {
    // Retries and the expiry of attempts.
    Advance(kTick * (1 + static_cast<int>(input_.Below(4))));
  } else {
    // Audits, and the end of calls.
    clock_.AdvanceBy(absl::Seconds(1 + input_.Below(4)));
  }
}

void Run::CheckThatItServes() {
  const Future<int64_t> answer = agent_->Async(agent_->info(), kEcho, 7);
  executor_.RunAll();
  HAWSER_CHECK(answer.ready());
  HAWSER_CHECK(answer.result().ok()) << answer.result().status();
  HAWSER_CHECK(*answer.result() == 7);
}

void Run::Check(const std::string& counter, const std::string& value) const {
  const std::map<std::string, std::string> info = agent_->DebugInfo();
  const auto found = info.find(counter);
  HAWSER_CHECK(found != info.end()) << counter;
  HAWSER_CHECK(found->second == value) << counter << " is " << found->second;
}

// The agent lets go of the peer, which is then lost, and of which nothing
// remains.
void Run::Finish() {
  CheckThatItServes();
  kept_numbers_.clear();
  kept_tensors_.clear();
  numbers_.clear();
  tensors_.clear();
  products_.clear();
  reader_.reset();
  for (const std::shared_ptr<dist_autograd::Context>& context : contexts_) {
    if (context != nullptr) engine_->ReleaseContext(context->id());
  }
  contexts_.clear();
  network_.Crash(peer_.info().address);
  rpc::MembershipLog log(&store_, agent_->job());
  HAWSER_CHECK(log.Append(rpc::LostEvent(peer_.info().incarnation,
                                         agent_->info().incarnation, "killed"))
                   .ok());
  Advance(kSilentLimit);
  for (const char* counter :
       {"agent.client_active_calls", "agent.server_active_calls", "rref.owners",
        "rref.awaited", "rref.forks", "rref.users", "rref.control_senders",
        "rref.control_receivers", "dist_autograd.contexts",
        "dist_autograd.backward_passes", "stream.open"}) {
    Check(counter, "0");
  }
  // The agent itself.
  Check("agent.remembered_senders", "1");
  for (const Future<void>& pass : passes_) HAWSER_CHECK(pass.ready());
  CheckThatItServes();
}

}  // namespace
}  // namespace hawser::tests

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hawser::tests::Run(hawser::fuzz::FuzzInput(data, size)).Play();
  return 0;
}

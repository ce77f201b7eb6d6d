// Fuzz test: sequences of messages of two hostile members about distributed
// optimizers of parameters of this worker.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/check.h"
#include "async/future.h"
#include "autograd/variable.h"
#include "bazel/fuzz/fuzz_input.h"
#include "bazel/fuzz/made_up_tensors.h"
#include "dist_autograd/context.h"
#include "dist_autograd/dist_autograd_service.h"
#include "dist_autograd/engine.h"
#include "dist_optim/dist_optim_service.h"
#include "dist_optim/service_methods.h"
#include "proto/dist_optim.pb.h"
#include "proto/rref.pb.h"
#include "rpc/functions/function.h"
#include "rpc/functions/function_registry.h"
#include "rpc/functions/method.h"
#include "rpc/identity/worker_run.h"
#include "rpc/wire/encoder.h"
#include "rref/ids.h"
#include "rref/rref_service.h"
#include "rref/service_methods.h"
#include "rref/wire_ids.h"
#include "tensor/tensor.h"
#include "tests/fuzz/hostile_peers.h"

namespace hawser::tests {
namespace {

using ::hawser::tensor::Tensor;

constexpr rpc::Function<Tensor()> kMakeLeaf{"MakeLeaf"};

class Run {
 public:
  explicit Run(fuzz::FuzzInput input) : input_(input), peers_(&input_) {
    const absl::Status registered =
        peers_.host().registry().Register(kMakeLeaf, [this] {
          leaves_.push_back(Tensor::Ones({2}));
          HAWSER_CHECK(autograd::SetRequiresGrad(leaves_.back()).ok());
          return leaves_.back();
        });
    HAWSER_CHECK(registered.ok()) << registered;
    peers_.Start(references_);
    peers_.Start(autograd_);
    peers_.Start(optimizers_);
    auto context = autograd_.engine()->CreateContext();
    HAWSER_CHECK(context.ok());
    context_ = *std::move(context);
    Offer();
    CreateOptimizerOfTwo();
  }

  void Play() {
    while (!input_.empty()) {
      Step();
      peers_.host().executor().RunAll();
    }
    Finish();
  }

 private:
  void Offer() {
    fuzz::MessageMaker& maker = peers_.maker();
    maker.OfferNumbers("hawser.v1.OptimizerStepRequest.context",
                       {ToNumber(context_->id())});
    maker.OfferStrings("hawser.v1.OptimizerRule.name",
                       {"SGD", "Adam", "Adagrad", "SparseAdam"});
    for (const char* field : {"hawser.v1.OptimizerRule.OptionsEntry.key",
                              "hawser.v1.SetOptimizerOptionRequest.option"}) {
      maker.OfferStrings(field, {"lr", "momentum", "beta1", "eps", "nesterov",
                                 "dampening", "weight_decay"});
    }
    maker.OfferStrings("hawser.v1.OptimizerParameterState.names",
                       {"momentum", "exp_avg", "exp_avg_sq", "sum"});
    maker.OfferStrings("hawser.v1.RRefCreateRequest.function",
                       {std::string(kMakeLeaf.name())});
    maker.OfferStrings("hawser.v1.RRefCreateRequest.signature",
                       {kMakeLeaf.Signature()});
    maker.OfferStrings("hawser.v1.RRefCreateRequest.arguments",
                       {rpc::Encoder().TakeValues()});
  }

  v1::GlobalId Id(size_t peer, uint64_t number) const {
    return rref::ToProto(
        rref::GlobalId{rpc::RunOf(peers_.all()[peer]), number});
  }

  // Parameters 1#1 and 1#2, and the optimizer 1#3.
  void CreateOptimizerOfTwo() {
    v1::CreateOptimizerRequest request;
    *request.mutable_rref() = Id(0, 3);
    *request.mutable_fork() = Id(0, 13);
    v1::OptimizerGroup& group = *request.add_groups();
    group.mutable_rule()->set_name("SGD");
    (*group.mutable_rule()->mutable_options())["lr"] = 0.5;
    (*group.mutable_rule()->mutable_options())["momentum"] = 0.5;
    for (uint64_t number : {1, 2}) {
      v1::RRefCreateRequest create;
      *create.mutable_rref() = Id(0, number);
      *create.mutable_fork() = Id(0, 10 + number);
      create.set_function(std::string(kMakeLeaf.name()));
      create.set_signature(kMakeLeaf.Signature());
      create.set_arguments(rpc::Encoder().TakeValues());
      const auto created = peers_.Call(rref::kCreateMethod, 0, create);
      peers_.host().executor().RunAll();
      HAWSER_CHECK(created.ready() && created.result().ok());
      v1::RRefReference& parameter = *group.add_parameters();
      *parameter.mutable_rref() = Id(0, number);
      *parameter.mutable_fork() = Id(0, 20 + number);
      *parameter.mutable_owner() =
          rref::ToProto(rpc::RunOf(peers_.host().info()));
    }
    const auto made =
        peers_.Call(dist_optim::kCreateOptimizerMethod, 0, request);
    HAWSER_CHECK(made.ready() && made.result().ok()) << made.result().status();
    peers_.maker().Offer(request.rref());
    peers_.maker().Offer(group);
    for (const v1::RRefReference& parameter : group.parameters()) {
      peers_.maker().Offer(parameter);
    }
  }

  void AddGradient() {
    const Tensor& leaf = leaves_[input_.Below(leaves_.size())];
    for (const Tensor& gradient : fuzz::MakeTensors(input_)) {
      if (gradient.dtype() != leaf.dtype() ||
          gradient.shape() != leaf.shape()) {
        continue;
      }
      HAWSER_CHECK(context_->AddGradient(leaf, gradient).ok());
    }
  }

  // A state that an optimizer has given is accepted again, by itself, with a
  // step of the input.
  void RestoreState() {
    const size_t peer = peers_.Choose();
    const auto get = peers_.maker().Make<v1::GetOptimizerStateRequest>();
    const auto got =
        peers_.Call(dist_optim::kGetOptimizerStateMethod, peer, get);
    if (!got.ready() || !got.result().ok()) return;
    const rpc::Message<v1::GetOptimizerStateReply>& state = *got.result();
    v1::SetOptimizerStateRequest set;
    *set.mutable_optimizer() = get.optimizer();
    *set.mutable_rules() = state.body.rules();
    *set.mutable_parameters() = state.body.parameters();
    if (input_.Bool()) {
      for (v1::OptimizerParameterState& parameter : *set.mutable_parameters()) {
        parameter.set_step(input_.Number());
      }
      (void)peers_.Call(dist_optim::kSetOptimizerStateMethod, peer, set,
                        state.tensors);
      return;
    }
    const auto restored = peers_.Call(dist_optim::kSetOptimizerStateMethod,
                                      peer, set, state.tensors);
    HAWSER_CHECK(restored.ready());
    HAWSER_CHECK(restored.result().ok()) << restored.result().status();
  }

  void Step() {
    switch (input_.Below(14)) {
      case 0:
      case 1:
        peers_.CallByInput(dist_optim::kCreateOptimizerMethod);
        break;
      case 2:
      case 3:
      case 4:
        peers_.CallByInput(dist_optim::kOptimizerStepMethod);
        break;
      case 5:
        peers_.CallByInput(dist_optim::kSetOptimizerOptionMethod);
        break;
      case 6:
        peers_.CallByInput(dist_optim::kGetOptimizerStateMethod);
        break;
      case 7:
      case 8:
        peers_.CallByInput(dist_optim::kSetOptimizerStateMethod);
        break;
      case 9:
        RestoreState();
        break;
      case 10:
        AddGradient();
        break;
      case 11:
        peers_.CallByInput(rref::kCreateMethod);
        break;
      case 12:
        peers_.CallByInput(rref::kFetchMethod);
        break;
      default:
        peers_.CallByInput(rref::kControlMethod);
        break;
    }
  }

  // The optimizers and parameters end with their peers.
  void Finish() {
    autograd_.engine()->ReleaseContext(context_->id());
    for (size_t peer = 0; peer < peers_.kNumPeers; ++peer) peers_.Lose(peer);
    peers_.FailAll(rref::kControlMethod);
    const rref::Protocol::Counts counts = references_.protocol()->counts();
    HAWSER_CHECK(counts.owner.owners == 0) << counts.owner.owners;
    HAWSER_CHECK(counts.owner.forks == 0);
    optimizers_.Stop();
    autograd_.Stop();
    references_.Interrupt();
    references_.Stop();
  }

  fuzz::FuzzInput input_;
  HostilePeers peers_;
  rref::RRefService references_;
  dist_autograd::DistAutogradService autograd_;
  dist_optim::DistOptimService optimizers_;
  std::shared_ptr<dist_autograd::Context> context_;
  std::vector<Tensor> leaves_;
};

}  // namespace
}  // namespace hawser::tests

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hawser::tests::Run(hawser::fuzz::FuzzInput(data, size)).Play();
  return 0;
}

// Fuzz test: sequences of messages of two hostile members about distributed
// autograd: forward messages, gradients, manifests, failures and the ends of
// contexts, while this worker runs backward passes of its own.

#include <array>
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
#include "async/task_local.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/variable.h"
#include "bazel/fuzz/fuzz_input.h"
#include "bazel/fuzz/made_up_tensors.h"
#include "dist_autograd/context.h"
#include "dist_autograd/dist_autograd_service.h"
#include "dist_autograd/engine.h"
#include "dist_autograd/service_methods.h"
#include "rpc/identity/worker_info.h"
#include "rpc/wire/message_interceptor.h"
#include "rref/rref_service.h"
#include "tensor/tensor.h"
#include "tests/fuzz/hostile_peers.h"

namespace hawser::tests {
namespace {

using ::hawser::async::Future;
using ::hawser::dist_autograd::Context;
using ::hawser::tensor::Tensor;

constexpr size_t kMaxPerPeer = 4;

// Ids of contexts and forward messages have their creator's rank in the top 16
// bits.
constexpr uint64_t IdOf(uint64_t rank, uint64_t number) {
  return rank << 48 | number;
}

class Run {
 public:
  explicit Run(fuzz::FuzzInput input) : input_(input), peers_(&input_) {
    peers_.Start(references_);
    peers_.Start(autograd_);
    // Of which the peers have two for each of them, and the last of this
    // worker.
    contexts_ = {IdOf(1, 1), IdOf(1, 2), IdOf(2, 1), IdOf(0, 1), IdOf(0, 2)};
    message_ids_ = {IdOf(1, 1), IdOf(1, 2), IdOf(2, 1), IdOf(0, 1), IdOf(0, 2)};
    Offer();
    HAWSER_CHECK(autograd::SetRequiresGrad(leaf_).ok());
  }

  void Play() {
    while (!input_.empty()) {
      Step();
      peers_.host().executor().RunAll();
      HAWSER_CHECK(engine().num_contexts() <=
                   kMaxPerPeer * peers_.kNumPeers + own_.size());
    }
    Finish();
  }

 private:
  dist_autograd::Engine& engine() { return *autograd_.engine(); }

  void Offer() {
    const std::vector<uint64_t> contexts(contexts_.begin(), contexts_.end());
    const std::vector<uint64_t> messages(message_ids_.begin(),
                                         message_ids_.end());
    fuzz::MessageMaker& maker = peers_.maker();
    for (const char* field : {"hawser.v1.BackwardPassId.context",
                              "hawser.v1.ReleaseContextRequest.contexts",
                              "hawser.v1.ReparentContextsRequest.contexts",
                              "hawser.v1.ReparentContextsReply.ended",
                              "hawser.v1.BackwardReferenceRequest.context"}) {
      maker.OfferNumbers(field, contexts);
    }
    for (const char* field : {"hawser.v1.MessageGradients.message",
                              "hawser.v1.GradientRequest.skipped",
                              "hawser.v1.MessageManifest.expected",
                              "hawser.v1.MessageManifest.known"}) {
      maker.OfferNumbers(field, messages);
    }
    std::vector<uint64_t> incarnations;
    incarnations.push_back(ToNumber(peers_.host().info().incarnation));
    for (const rpc::WorkerInfo& peer : peers_.all()) {
      incarnations.push_back(ToNumber(peer.incarnation));
    }
    maker.OfferNumbers("hawser.v1.BackwardPassId.context_incarnation",
                       incarnations);
  }

  rpc::AutogradMetadata MakeMetadata(size_t num_tensors) {
    rpc::AutogradMetadata metadata;
    metadata.context_id = contexts_[input_.Below(contexts_.size())];
    const size_t creator = input_.Below(peers_.kNumPeers + 1);
    metadata.context_incarnation = creator == 0
                                       ? peers_.host().info().incarnation
                                       : peers_.all()[creator - 1].incarnation;
    metadata.message_id = message_ids_[input_.Below(message_ids_.size())];
    const uint8_t flags = input_.Byte();
    for (size_t i = 0; i < num_tensors; ++i) {
      metadata.requires_grad.push_back((flags >> i & 1) != 0);
    }
    return metadata;
  }

  // This worker sends `tensor`, and remembers the id of the message.
  void Send(const Tensor& tensor) {
    const std::vector<Tensor> tensors = {tensor};
    const auto metadata =
        engine().OnSend(peers_.all()[peers_.Choose()], tensors);
    if (!metadata.ok() || !metadata->has_value()) return;
    message_ids_[3 + next_message_id_++ % 2] = (*metadata)->message_id;
    Offer();
  }

  // A call of a peer, whose function multiplies and sends the product on.
  void ReceiveRequest() {
    const rpc::WorkerInfo& peer = peers_.all()[peers_.Choose()];
    std::vector<Tensor> tensors = fuzz::MakeTensors(input_);
    const rpc::AutogradMetadata metadata = MakeMetadata(tensors.size());
    const auto context = engine().OnReceiveRequest(peer, metadata, tensors);
    if (!context.ok()) return;
    async::TaskContext::Scope scope(*context);
    if (tensors.empty()) return;
    const absl::StatusOr<Tensor> product = autograd::Mul(tensors[0], leaf_);
    if (product.ok()) Send(*product);
  }

  // A call of this worker in one of its contexts, and the reply.
  void CallPeer() {
    const std::shared_ptr<Context>& context = own_[input_.Below(own_.size())];
    if (context == nullptr) return;
    const dist_autograd::Engine::CurrentContext current(context);
    const absl::StatusOr<Tensor> sent = autograd::Mul(leaf_, leaf_);
    HAWSER_CHECK(sent.ok());
    Send(*sent);
    std::vector<Tensor> tensors = fuzz::MakeTensors(input_);
    const rpc::WorkerInfo& peer = peers_.all()[peers_.Choose()];
    const rpc::AutogradMetadata metadata = MakeMetadata(tensors.size());
    if (!engine().OnReceiveReply(peer, metadata, tensors).ok()) return;
    if (!tensors.empty()) received_ = tensors[0];
  }

  void Backward() {
    const std::shared_ptr<Context>& context = own_[input_.Below(own_.size())];
    if (context == nullptr) return;
    absl::StatusOr<Tensor> root = autograd::Mul(received_, leaf_);
    if (!root.ok()) return;
    root = autograd::Sum(*root);
    if (!root.ok()) return;
    passes_.push_back(engine().Backward(
        context->id(), {*root},
        {.retain_graph = input_.Bool(),
         .mode = input_.Bool() ? dist_autograd::BackwardMode::kFast
                               : dist_autograd::BackwardMode::kSmart}));
  }

  void BeginOrEndContext() {
    const size_t slot = input_.Below(own_.size());
    if (own_[slot] != nullptr) {
      engine().ReleaseContext(own_[slot]->id());
      own_[slot] = nullptr;
      return;
    }
    auto context = engine().CreateContext();
    if (!context.ok()) return;
    own_[slot] = *std::move(context);
    contexts_[3 + slot] = ToNumber(own_[slot]->id());
    Offer();
  }

  void Reply() {
    if (peers_.ReplyTo(dist_autograd::kGradientMethod)) return;
    if (peers_.ReplyTo(dist_autograd::kReparentContextsMethod)) return;
    if (peers_.ReplyTo(dist_autograd::kReleaseContextMethod)) return;
    (void)peers_.ReplyTo(dist_autograd::kAbortPassMethod);
  }

  void Step() {
    switch (input_.Below(16)) {
      case 0:
        BeginOrEndContext();
        break;
      case 1:
      case 2:
        ReceiveRequest();
        break;
      case 3:
        CallPeer();
        break;
      case 4:
      case 5:
        Backward();
        break;
      case 6:
        peers_.CallByInput(dist_autograd::kAbortPassMethod);
        break;
      case 7:
        peers_.CallByInput(dist_autograd::kReleaseContextMethod);
        break;
      case 8:
        peers_.CallByInput(dist_autograd::kReparentContextsMethod);
        break;
      case 9:
        peers_.CallByInput(dist_autograd::kBackwardReferenceMethod);
        break;
      case 10:
        Reply();
        break;
      case 11:
        peers_.host().clock().AdvanceBy(absl::Seconds(1 + input_.Below(32)));
        break;
      case 12:
        peers_.CancelCall();
        break;
      case 13:
        if (input_.Below(4) == 3) peers_.Lose(peers_.Choose());
        break;
      default:
        peers_.CallByInput(dist_autograd::kGradientMethod);
        break;
    }
  }

  // Nothing is left once this worker has ended its contexts and the peers are
  // lost.
  void Finish() {
    for (const std::shared_ptr<Context>& context : own_) {
      if (context != nullptr) engine().ReleaseContext(context->id());
    }
    for (size_t peer = 0; peer < peers_.kNumPeers; ++peer) peers_.Lose(peer);
    peers_.FailAll(dist_autograd::kGradientMethod);
    peers_.FailAll(dist_autograd::kReparentContextsMethod);
    peers_.FailAll(dist_autograd::kReleaseContextMethod);
    peers_.FailAll(dist_autograd::kAbortPassMethod);
    peers_.host().executor().RunAll();
    HAWSER_CHECK(engine().num_contexts() == 0) << engine().num_contexts();
    HAWSER_CHECK(engine().num_passes() == 0);
    for (const Future<void>& pass : passes_) HAWSER_CHECK(pass.ready());
    autograd_.Stop();
    references_.Interrupt();
    references_.Stop();
  }

  fuzz::FuzzInput input_;
  HostilePeers peers_;
  rref::RRefService references_;
  dist_autograd::DistAutogradService autograd_{
      {.limits = {.max_contexts_per_peer = kMaxPerPeer}}};
  const Tensor leaf_ = Tensor::Ones({2});
  std::array<std::shared_ptr<Context>, 2> own_;
  Tensor received_ = Tensor::Ones({2});
  std::vector<Future<void>> passes_;
  std::array<uint64_t, 5> contexts_{};
  std::array<uint64_t, 5> message_ids_{};
  size_t next_message_id_ = 0;
};

}  // namespace
}  // namespace hawser::tests

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hawser::tests::Run(hawser::fuzz::FuzzInput(data, size)).Play();
  return 0;
}

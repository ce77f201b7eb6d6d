// Fuzz test: sequences of messages of two hostile members about references,
// while this worker shares references with both.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/check.h"
#include "async/future.h"
#include "bazel/fuzz/fuzz_input.h"
#include "proto/rref.pb.h"
#include "rpc/functions/erased_value.h"
#include "rpc/functions/function.h"
#include "rpc/wire/decoder.h"
#include "rpc/wire/encoder.h"
#include "rref/protocol.h"
#include "rref/reference.h"
#include "rref/rref_service.h"
#include "rref/service_methods.h"
#include "tests/fuzz/hostile_peers.h"

namespace hawser::tests {
namespace {

using ::hawser::async::Future;

constexpr rpc::Function<int64_t()> kSeven{"Seven"};
constexpr rpc::Function<int64_t()> kLater{"Later"};
constexpr rpc::Function<void()> kNothing{"Nothing"};

constexpr size_t kMaxReferences = 4;

class Run {
 public:
  explicit Run(fuzz::FuzzInput input) : input_(input), peers_(&input_) {
    absl::Status status;
    rpc::FunctionRegistry& registry = peers_.host().registry();
    status.Update(registry.Register(kSeven, [] { return int64_t{7}; }));
    status.Update(registry.Register(
        kLater, [this] { return later_.emplace_back().future(); }));
    status.Update(registry.Register(kNothing, [] {}));
    HAWSER_CHECK(status.ok()) << status;
    peers_.Start(service_);
    peers_.maker().OfferStrings(
        "hawser.v1.RRefCreateRequest.function",
        {std::string(kSeven.name()), std::string(kLater.name()),
         std::string(kNothing.name())});
    peers_.maker().OfferStrings("hawser.v1.RRefCreateRequest.signature",
                                {kSeven.Signature(), kNothing.Signature()});
    peers_.maker().OfferStrings("hawser.v1.RRefCreateRequest.arguments",
                                {rpc::Encoder().TakeValues()});
    peers_.maker().OfferStrings("hawser.v1.RRefFetchedValue.type_name",
                                {rpc::TypeName<int64_t>()});
  }

  void Play() {
    while (!input_.empty()) {
      Step();
      peers_.host().executor().RunAll();
      CheckLimits();
    }
    Finish();
  }

 private:
  rref::Protocol& protocol() { return *service_.protocol(); }

  void Learn(const rref::Reference& reference) {
    peers_.maker().Offer(rref::ToProto(reference.id()));
    peers_.maker().Offer(rref::ToProto(reference.fork()));
  }

  void Control() {
    const size_t peer = peers_.Choose();
    peers_.maker().OfferNumbers("hawser.v1.RRefControlRequest.first_sequence",
                                {next_sequence_[peer]});
    const auto request = peers_.maker().Make<v1::RRefControlRequest>();
    const auto reply = peers_.Call(rref::kControlMethod, peer, request);
    HAWSER_CHECK(reply.ready());
    // A repetition gets the reply to the first.
    if (!reply.result().ok() ||
        request.first_sequence() != next_sequence_[peer]) {
      return;
    }
    HAWSER_CHECK(reply.result()->body.results_size() ==
                 request.operations_size());
    next_sequence_[peer] += static_cast<uint64_t>(request.operations_size());
  }

  // A reference in the arguments of a call.
  void ReceiveReference() {
    const size_t peer = peers_.Choose();
    const auto message = peers_.maker().Make<v1::RRefReference>();
    auto received = protocol().Receive(message, peers_.all()[peer]);
    if (!received.ok() || references_.size() == kMaxReferences) return;
    references_.push_back(std::move(received->reference));
  }

  void MakeLocal() {
    auto made = protocol().MakeLocal(rpc::Erase<int64_t>(7));
    if (!made.ok() || references_.size() == kMaxReferences) return;
    Learn(**made);
    references_.push_back(*std::move(made));
  }

  void BeginCreation() {
    rref::Protocol::Creation creation =
        protocol().BeginCreation(peers_.all()[peers_.Choose()]);
    Learn(*creation.reference);
    creations_.push_back(std::move(creation.finish));
    if (references_.size() < kMaxReferences) {
      references_.push_back(std::move(creation.reference));
    }
  }

  void FinishCreation() {
    if (creations_.empty()) return;
    const absl::Status status =
        input_.Bool() ? absl::OkStatus() : peers_.MadeUpError();
    std::move(creations_.front())(status);
    creations_.pop_front();
  }

  void ShareReference() {
    if (references_.empty()) return;
    const auto message =
        protocol().Share(*references_[input_.Below(references_.size())],
                         peers_.all()[peers_.Choose()]);
    if (!message.ok()) return;
    peers_.maker().Offer(message->fork());
  }

  void DropReference() {
    if (references_.empty()) return;
    references_.erase(
        references_.begin() +
        static_cast<std::ptrdiff_t>(input_.Below(references_.size())));
  }

  void FetchReference() {
    if (references_.empty()) return;
    const std::shared_ptr<const rref::Reference> reference =
        references_[input_.Below(references_.size())];
    if (reference->is_owner()) {
      (void)reference->AwaitValue(absl::Seconds(5));
      return;
    }
    std::vector<rref::Reference::Fetch> fetches;
    for (size_t i = 0; i <= input_.Below(2); ++i) {
      fetches.push_back(
          {.reference = reference,
           .type_name = rpc::TypeName<int64_t>(),
           .done = [](const absl::StatusOr<rpc::Decoder*>& value) {
             if (value.ok()) (void)rpc::WireTraits<int64_t>::Decode(**value);
           }});
    }
    (void)rref::Reference::Request(std::move(fetches), absl::Seconds(5));
  }

  void Step() {
    switch (input_.Below(20)) {
      case 0:
      case 1:
        peers_.CallByInput(rref::kCreateMethod);
        break;
      case 2:
        peers_.CallByInput(rref::kFetchMethod);
        break;
      case 3:
        ReceiveReference();
        break;
      case 4:
        MakeLocal();
        break;
      case 5:
        BeginCreation();
        break;
      case 6:
        FinishCreation();
        break;
      case 7:
      case 8:
        ShareReference();
        break;
      case 9:
        DropReference();
        break;
      case 10:
        FetchReference();
        break;
      case 11:
        (void)peers_.ReplyTo(rref::kFetchMethod);
        break;
      case 12:
      case 13:
        (void)peers_.ReplyTo(rref::kControlMethod);
        break;
      case 14:
        peers_.host().clock().AdvanceBy(absl::Seconds(1 + input_.Below(64)));
        break;
      case 15:
        if (later_.empty()) break;
        later_.front().Set(int64_t{8});
        later_.pop_front();
        break;
      case 16:
        peers_.CancelCall();
        break;
      case 17:
        if (input_.Below(4) == 3) peers_.Lose(peers_.Choose());
        break;
      default:
        Control();
        break;
    }
  }

  void CheckLimits() {
    const rref::Protocol::Counts counts = protocol().counts();
    HAWSER_CHECK(counts.owner.awaited <= kMaxPerPeer * peers_.kNumPeers);
    HAWSER_CHECK(counts.owner.remote_forks <= kMaxPerPeer * peers_.kNumPeers);
  }

  // Nothing is left once this worker has dropped its references and the peers
  // are lost.
  void Finish() {
    references_.clear();
    for (auto& finish : creations_) {
      std::move(finish)(absl::UnavailableError("the peer is lost"));
    }
    creations_.clear();
    for (size_t peer = 0; peer < peers_.kNumPeers; ++peer) peers_.Lose(peer);
    peers_.FailAll(rref::kFetchMethod);
    peers_.FailAll(rref::kControlMethod);
    peers_.host().executor().RunAll();
    const rref::Protocol::Counts counts = protocol().counts();
    HAWSER_CHECK(counts.owner.owners == 0);
    HAWSER_CHECK(counts.owner.awaited == 0);
    HAWSER_CHECK(counts.owner.forks == 0);
    HAWSER_CHECK(counts.user.users == 0);
    HAWSER_CHECK(counts.user.pending_children == 0);
    HAWSER_CHECK(counts.control_operations == 0);
    HAWSER_CHECK(counts.control_senders == 0);
    HAWSER_CHECK(counts.control_receivers == 0);
    service_.Interrupt();
    service_.Stop();
  }

  static constexpr size_t kMaxPerPeer = 4;

  fuzz::FuzzInput input_;
  HostilePeers peers_;
  rref::RRefService service_{
      {.tombstones = 4, .limits = {.max_references_per_peer = kMaxPerPeer}}};
  uint64_t next_sequence_[HostilePeers::kNumPeers] = {1, 1};
  std::deque<async::Promise<int64_t>> later_;
  std::deque<absl::AnyInvocable<void(const absl::Status&) &&>> creations_;
  std::vector<std::shared_ptr<rref::Reference>> references_;
};

}  // namespace
}  // namespace hawser::tests

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hawser::tests::Run(hawser::fuzz::FuzzInput(data, size)).Play();
  return 0;
}

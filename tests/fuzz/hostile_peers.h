// Peers of services under a fuzz target, without agents and network.

#ifndef HAWSER_TESTS_FUZZ_HOSTILE_PEERS_H_
#define HAWSER_TESTS_FUZZ_HOSTILE_PEERS_H_

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/check.h"
#include "async/future.h"
#include "bazel/fuzz/fuzz_input.h"
#include "bazel/fuzz/made_up_tensors.h"
#include "bazel/fuzz/message_maker.h"
#include "rpc/agent/service.h"
#include "rpc/functions/method.h"
#include "rpc/functions/service_method.h"
#include "rpc/identity/worker_info.h"
#include "rpc/identity/worker_run.h"
#include "rpc/testing/fakes/fake_service_host.h"
#include "rpc/transport/cancellation.h"
#include "rref/ids.h"
#include "rref/wire_ids.h"

namespace hawser::tests {

// The members "w1" and "w2" of a job whose "w0" is the host of the services.
// Their messages are made from the input; for one thread.
class HostilePeers {
 public:
  static constexpr int kNumPeers = 2;

  explicit HostilePeers(fuzz::FuzzInput* input)
      : input_(*input), maker_(input) {
    for (int rank = 0; rank <= kNumPeers; ++rank) {
      const rpc::WorkerInfo worker = rpc::FakeServiceHost::MakeWorker(rank);
      maker_.Offer(rref::ToProto(rpc::RunOf(worker)));
      if (rank == 0) continue;
      peers_.push_back(worker);
      host_.AddWorker(worker);
      for (uint64_t number : {1, 2}) {
        maker_.Offer(rref::ToProto(rref::GlobalId{rpc::RunOf(worker), number}));
      }
    }
  }

  rpc::FakeServiceHost& host() { return host_; }
  fuzz::MessageMaker& maker() { return maker_; }
  const std::vector<rpc::WorkerInfo>& all() const { return peers_; }

  // The number of a peer that the input chooses.
  size_t Choose() { return input_.Below(kNumPeers); }

  // Starts `service`, which other services find.
  void Start(rpc::Service& service) {
    const absl::Status status = service.Start(host_);
    HAWSER_CHECK(status.ok()) << status;
    host_.AddService(&service);
    services_.push_back(&service);
  }

  // Calls `method` in the name of `peer`.
  template <class Request, class Reply>
  async::Future<rpc::Message<Reply>> Call(
      const rpc::ServiceMethod<Request, Reply>& method, size_t peer,
      const Request& request, std::vector<tensor::Tensor> tensors = {}) {
    auto cancellation = std::make_shared<rpc::Cancellation>();
    calls_.push_back(cancellation);
    return host_.Receive(
        method,
        rpc::MethodCall{.peer = peers_[peer], .cancellation = cancellation},
        request, std::move(tensors));
  }
  // Same, with a request from the input.
  template <class Request, class Reply>
  void CallByInput(const rpc::ServiceMethod<Request, Reply>& method) {
    const size_t peer = Choose();
    const Request request = maker_.Make<Request>();
    (void)Call(method, peer, request, fuzz::MakeTensors(input_));
  }
  // Cancels one of the calls.
  void CancelCall() {
    if (!calls_.empty()) calls_[input_.Below(256) % calls_.size()]->Cancel();
  }

  // Replies to the oldest call of `method` that a service made. Returns false
  // if there is none.
  template <class Request, class Reply>
  bool ReplyTo(const rpc::ServiceMethod<Request, Reply>& method) {
    auto call = host_.TakeCall(method);
    if (!call.has_value()) return false;
    if (input_.Below(4) == 3) {
      call->SetReply(MadeUpError());
    } else {
      rpc::Message<Reply> reply;
      maker_.Fill(reply.body);
      reply.tensors = fuzz::MakeTensors(input_);
      call->SetReply(std::move(reply));
    }
    return true;
  }
  // Fails all calls of `method` that a service made.
  template <class Request, class Reply>
  void FailAll(const rpc::ServiceMethod<Request, Reply>& method) {
    while (auto call = host_.TakeCall(method)) {
      call->SetReply(absl::UnavailableError("the peer is lost"));
    }
  }

  absl::Status MadeUpError() {
    return absl::Status(static_cast<absl::StatusCode>(1 + input_.Below(16)),
                        "made up");
  }

  void Lose(size_t peer) {
    host_.LoseWorker(peers_[peer]);
    for (rpc::Service* service : services_) {
      service->OnWorkerLost(peers_[peer],
                            absl::UnavailableError("the peer is lost"));
    }
    host_.executor().RunAll();
  }

 private:
  fuzz::FuzzInput& input_;
  fuzz::MessageMaker maker_;
  rpc::FakeServiceHost host_;
  std::vector<rpc::WorkerInfo> peers_;
  std::vector<rpc::Service*> services_;
  std::vector<std::shared_ptr<rpc::Cancellation>> calls_;
};

}  // namespace hawser::tests

#endif  // HAWSER_TESTS_FUZZ_HOSTILE_PEERS_H_

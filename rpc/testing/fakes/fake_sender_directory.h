// A SenderDirectory for unit tests, without membership.

#ifndef HAWSER_RPC_TESTING_FAKES_FAKE_SENDER_DIRECTORY_H_
#define HAWSER_RPC_TESTING_FAKES_FAKE_SENDER_DIRECTORY_H_

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "rpc/agent/inbound/sender_directory.h"
#include "rpc/identity/worker_info.h"
#include "rpc/peers/peer.h"

namespace hawser::rpc {

// Knows the workers that the test adds, and records the senders that it is
// told. For one thread.
class FakeSenderDirectory final : public SenderDirectory {
 public:
  // `worker` is a known peer from now on. It has no connection.
  std::shared_ptr<Peer> AddPeer(const WorkerInfo& worker);
  // IsLost holds from now on.
  void SetLost(Incarnation worker) { lost_.insert(worker); }
  // HasDeparted holds from now on.
  void SetDeparted(Incarnation worker) { departed_.insert(worker); }
  // Completes the oldest Confirm that waits.
  void FinishConfirm(absl::Status status);
  // Result of MaybeFenced; false if null.
  void SetMaybeFenced(std::function<bool()> maybe_fenced) {
    maybe_fenced_ = std::move(maybe_fenced);
  }

  // Names of the senders passed to OnMessage and to Confirm.
  std::vector<std::string> heard;
  std::vector<std::string> confirming;

  std::shared_ptr<Peer> FindSender(Incarnation incarnation) const override;
  bool IsLost(const WorkerInfo& worker) const override {
    return lost_.contains(worker.incarnation);
  }
  bool HasDeparted(Incarnation incarnation) const override {
    return departed_.contains(incarnation);
  }
  bool MaybeFenced() const override {
    return maybe_fenced_ != nullptr && maybe_fenced_();
  }
  void OnMessage(const std::shared_ptr<Peer>& sender) override {
    heard.push_back(sender->info().name);
  }
  void Confirm(const WorkerInfo& sender,
               absl::AnyInvocable<void(absl::Status) &&> done) override {
    confirming.push_back(sender.name);
    confirms_.push_back(std::move(done));
  }

 private:
  absl::flat_hash_map<Incarnation, std::shared_ptr<Peer>> peers_;
  absl::flat_hash_set<Incarnation> lost_;
  absl::flat_hash_set<Incarnation> departed_;
  std::deque<absl::AnyInvocable<void(absl::Status) &&>> confirms_;
  std::function<bool()> maybe_fenced_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TESTING_FAKES_FAKE_SENDER_DIRECTORY_H_

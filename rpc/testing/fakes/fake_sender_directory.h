// A SenderDirectory for unit tests, without membership.

#ifndef HAWSER_RPC_TESTING_FAKES_FAKE_SENDER_DIRECTORY_H_
#define HAWSER_RPC_TESTING_FAKES_FAKE_SENDER_DIRECTORY_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
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
  // LookUp finds the record from now on.
  void SetRecord(const WorkerInfo& worker) { records_[worker.name] = worker; }
  // LookUp fails from now on.
  void SetStoreError(absl::Status status) { store_ = std::move(status); }
  // Result of MaybeFenced; false if null.
  void SetMaybeFenced(std::function<bool()> maybe_fenced) {
    maybe_fenced_ = std::move(maybe_fenced);
  }

  // Names of the senders passed to OnMessage, to LearnAbout and to LookUp.
  std::vector<std::string> heard;
  std::vector<std::string> learned;
  std::vector<std::string> looked_up;

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
  void LearnAbout(const WorkerInfo& sender) override {
    learned.push_back(sender.name);
  }
  absl::StatusOr<std::optional<WorkerInfo>> LookUp(
      std::string_view name) override;

 private:
  absl::flat_hash_map<Incarnation, std::shared_ptr<Peer>> peers_;
  absl::flat_hash_set<Incarnation> lost_;
  absl::flat_hash_set<Incarnation> departed_;
  absl::flat_hash_map<std::string, WorkerInfo> records_;
  absl::Status store_;
  std::function<bool()> maybe_fenced_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TESTING_FAKES_FAKE_SENDER_DIRECTORY_H_

// PeerFinder for unit tests, which knows the peers that a test adds.

#ifndef HAWSER_RPC_TESTING_FAKES_FAKE_PEER_FINDER_H_
#define HAWSER_RPC_TESTING_FAKES_FAKE_PEER_FINDER_H_

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/clock.h"
#include "rpc/agent/outbound/peer_finder.h"
#include "rpc/errors/error_detail.h"
#include "rpc/identity/call_options.h"
#include "rpc/identity/worker_info.h"
#include "rpc/peers/peer.h"

namespace hawser::rpc {

// Records which peers were looked for and watched. For one thread.
class FakePeerFinder final : public PeerFinder {
 public:
  void Add(std::shared_ptr<Peer> peer) { peers_.push_back(std::move(peer)); }
  // Forgets all others.
  void Replace(std::shared_ptr<Peer> peer) { peers_ = {std::move(peer)}; }

  // The deadline of the last FindPeer; nullopt if there was none.
  std::optional<async::MonotonicTime> last_deadline() const {
    return last_deadline_;
  }
  // The peers passed to Watch, in order, with repetitions.
  const std::vector<std::shared_ptr<Peer>>& watched() const { return watched_; }

  // kNotFound if no added peer matches.
  absl::StatusOr<std::shared_ptr<Peer>> FindPeer(
      const Destination& to, async::MonotonicTime deadline) override {
    last_deadline_ = deadline;
    const auto found = std::find_if(peers_.begin(), peers_.end(),
                                    [&](const std::shared_ptr<Peer>& peer) {
                                      return Matches(to, peer->info());
                                    });
    if (found != peers_.end()) return *found;
    return WithErrorDetail(
        absl::NotFoundError(absl::StrCat("the job has no ", to.ToString())),
        to.worker(), /*maybe_applied=*/false);
  }
  void Watch(const std::shared_ptr<Peer>& peer) override {
    watched_.push_back(peer);
  }

 private:
  static bool Matches(const Destination& to, const WorkerInfo& worker) {
    if (const auto* id = std::get_if<WorkerId>(&to.to())) {
      return worker.id == *id;
    }
    if (const auto* wanted = std::get_if<WorkerInfo>(&to.to())) {
      return worker.incarnation == wanted->incarnation;
    }
    return worker.name == to.name();
  }

  std::vector<std::shared_ptr<Peer>> peers_;
  std::vector<std::shared_ptr<Peer>> watched_;
  std::optional<async::MonotonicTime> last_deadline_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TESTING_FAKES_FAKE_PEER_FINDER_H_

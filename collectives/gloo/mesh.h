// Connections of one rank to all others.

#ifndef HAWSER_COLLECTIVES_GLOO_MESH_H_
#define HAWSER_COLLECTIVES_GLOO_MESH_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/mutex.h"
#include "collectives/backend.h"
#include "gloo/transport/context.h"
#include "gloo/transport/device.h"
#include "store/store.h"

namespace hawser::collectives {

class Transfer;

// Two connections to each other rank: one for data, on which transfers run, and
// one for short frames, which say how the ranks are. Bytes of an interrupted
// transfer thus never hold up the reason of a failure.
//
// A rank that ends the group sends the reason to all, and then closes its data
// connections. The frames decide why a transfer has failed: a closed data
// connection alone does not tell whether its rank has died, has left, or has
// reacted to the end of another one.
//
// Thread-safe. No exception of Gloo leaves it.
class Mesh {
 public:
  struct Options {
    int rank = 0;
    int size = 1;
    std::string host = "";
    std::string interface = "";
    // The name of this rank's machine, of at most 255 bytes.
    std::string machine = "";
  };

  enum class FrameKind : uint32_t {
    // The rank ends the group; the text is the reason.
    kAbort,
    // The rank needs nothing of the group any more.
    kLeave,
    // Reply to both.
    kAcknowledge,
    // Asks whether the rank runs, and the reply, with the number of operations
    // that it has begun.
    kProbe,
    kAlive,
    // For the receiver of frames.
    kMessage,
    kReceived,
  };
  struct Frame {
    FrameKind kind = FrameKind::kMessage;
    uint32_t tag = 0;
    uint64_t number = 0;
    // Of a message; its data follow if there are at most kInlineBytes.
    uint64_t bytes = 0;
  };
  static constexpr size_t kInlineBytes = 4096;

  // Runs in a thread of the mesh, one at a time for each rank.
  using OnFrame = std::function<void(int from, const Frame&, ConstBytes text)>;
  using OnFailure = std::function<void(const absl::Status&)>;

  static absl::StatusOr<std::unique_ptr<Mesh>> Connect(store::Store& store,
                                                       const Options& options,
                                                       absl::Duration timeout);
  // Tells the others that this rank leaves. No transfer is left.
  ~Mesh();

  // Begins to receive frames. Called once.
  void Start(OnFrame on_frame, OnFailure on_failure);
  // Ends the handlers of Start, and all calls of them. Called before what they
  // use is destroyed.
  void Stop();

  int rank() const { return options_.rank; }
  int size() const { return options_.size; }
  const std::string& machine_of(int rank) const {
    return machines_[static_cast<size_t>(rank)];
  }

  // Counts the collectives that this rank has begun.
  void BeginOperation() { num_begun_.fetch_add(1, std::memory_order_relaxed); }

  void SendFrame(int to, const Frame& frame, ConstBytes text);

  // Ends all transfers, here with `status` and on the other ranks with
  // kAborted. The first call wins; returns its status.
  absl::Status Fail(const absl::Status& status);
  absl::Status failure() const;

  // kDeadlineExceeded that names the ranks that hold up this rank's operation,
  // which waits for those in `late`: they may be late because they wait for
  // another. It asks all ranks. At fault are those that do not react, or else
  // those that have begun fewer operations than this one, or else the late
  // ones.
  absl::Status LateError(const std::set<int>& late);
  // Adds the ranks that do not react to the error of a message that is late.
  absl::Status NameSilentRanks(const absl::Status& late);

  // Why a transfer with `peer` has failed: waits for the frame that says so,
  // or for the end of its process, for up to five seconds.
  absl::Status ReasonOf(int peer);

 private:
  friend class Transfer;

  struct OutgoingFrame;
  struct Peer;
  using Contexts = std::shared_ptr<gloo::transport::Context>;

  Mesh(const Options& options, std::vector<std::string> machines,
       std::shared_ptr<gloo::transport::Device> device, Contexts data,
       Contexts control);

  // What the other ranks reply to a probe.
  struct Replies {
    // Those that have not replied.
    std::set<int> silent;
    // Those that have begun fewer operations than this one.
    std::set<int> behind;
  };
  Replies ProbeAll();

  void Receive(Peer& peer);
  // Returns false once the connection is closed.
  bool ReceiveFrame(Peer& peer);
  void Handle(Peer& peer, const Frame& frame, ConstBytes text);
  // Has received all data that the rank has sent before it left.
  void DrainData(Peer& peer);
  void SendToAll(FrameKind kind, std::string_view text);
  void WaitForAcknowledgements();

  // False once the group has failed.
  bool Register(Transfer* transfer);
  void Unregister(Transfer* transfer);

  const Options options_;
  const std::vector<std::string> machines_;
  std::atomic<uint64_t> num_begun_ = 0;
  // In this order: connections must end before their device.
  const std::shared_ptr<gloo::transport::Device> device_;
  const Contexts data_;
  const Contexts control_;
  std::vector<std::unique_ptr<Peer>> peers_;
  OnFrame on_frame_;
  OnFailure on_failure_;

  mutable async::Mutex mutex_;
  async::CondVar changed_;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  int num_handling_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::set<Transfer*> transfers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_GLOO_MESH_H_

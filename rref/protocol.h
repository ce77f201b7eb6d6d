#ifndef HAWSER_RREF_PROTOCOL_H_
#define HAWSER_RREF_PROTOCOL_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/mutex.h"
#include "proto/rref.pb.h"
#include "rpc/agent/service_host.h"
#include "rpc/identity/worker_run.h"
#include "rref/control_channel.h"
#include "rref/host_handle.h"
#include "rref/ids.h"
#include "rref/owner_table.h"
#include "rref/reference.h"
#include "rref/reference_limits.h"
#include "rref/user_table.h"

namespace hawser::rref {

struct RRefOptions {
  // A reference given away of whose arrival nothing is heard for this long, up
  // to twice, is asked about. A call that arrives later than that with a
  // reference fails. Positive.
  absl::Duration audit_interval = absl::Seconds(60);
  // How long one attempt to deliver a control message waits for the answer.
  absl::Duration control_attempt_timeout = absl::Seconds(2);
  // How many references given up are remembered.
  size_t tombstones = 65536;
  ReferenceLimits limits = {};
  // Graceful shutdown waits until nobody refers to a value here. Off where
  // other workers go on.
  bool wait_for_users = true;
};

// The reference protocol of one worker: joins the tables and the control
// channel to an agent. Described in docs/rref.md.
//
// Shared by the agent's RRefService and every Reference, which may outlive the
// agent: after Stop all operations give kFailedPrecondition. Thread-safe.
class Protocol : public std::enable_shared_from_this<Protocol> {
 public:
  using EncodeArguments = absl::FunctionRef<absl::Status(rpc::Encoder&)>;

  struct ReceivedReference {
    std::shared_ptr<Reference> reference;
    // Completes when the reference may be used; invalid if that is now.
    async::Future<void> prerequisite;
  };

  struct Counts {
    OwnerTable::Counts owner;
    UserTable::Counts user;
    size_t control_operations = 0;
    // Workers whose control messages are numbered here, as they come and go.
    size_t control_senders = 0;
    size_t control_receivers = 0;
  };

  Protocol(rpc::ServiceHost& host, RRefOptions options);

  // --- What references do.

  // Runs a function on `to` that keeps its result there.
  absl::StatusOr<std::shared_ptr<Reference>> Create(
      const rpc::Destination& to, std::optional<absl::Duration> timeout,
      std::string_view function, std::string_view signature,
      EncodeArguments encode_arguments);

  // As Create, for a creation whose message another layer sends.
  struct Creation {
    std::shared_ptr<Reference> reference;
    // To be called once with the outcome.
    absl::AnyInvocable<void(const absl::Status&) &&> finish;
  };
  Creation BeginCreation(const rpc::WorkerInfo& owner);
  // The owner's half of it: the value to complete.
  absl::StatusOr<std::shared_ptr<OwnerValue>> ReceiveCreation(
      const v1::GlobalId& rref, const v1::GlobalId& fork,
      const rpc::WorkerInfo& creator);

  // A reference to an object of this worker, unknown to others until shared.
  absl::StatusOr<std::shared_ptr<Reference>> MakeLocal(rpc::ErasedValue object);

  // Packs a reference for a message to `to`, and the other way round.
  absl::StatusOr<v1::RRefReference> Share(const Reference& reference,
                                          const rpc::WorkerInfo& to);
  absl::StatusOr<ReceivedReference> Receive(const v1::RRefReference& reference,
                                            const rpc::WorkerInfo& from);

  void Fetch(const Reference& reference, std::string_view type_name, bool await,
             std::optional<absl::Duration> timeout, Reference::Fetched done);
  // The value of this worker's reference `rref`, waited for until it is made,
  // for `timeout` (unset: the agent's default).
  async::Future<rpc::ErasedValue> AwaitOwnValue(
      RRefId rref, const OwnerValue& value,
      std::optional<absl::Duration> timeout);
  void Release(ForkId fork);
  void ReleaseEntry(RRefId rref);
  // The error kept with a user's copy.
  absl::Status Check(ForkId fork) const;

  // The value of a reference of this worker that a message of `from` names.
  absl::StatusOr<std::shared_ptr<OwnerValue>> FindValue(
      const v1::GlobalId& rref, const rpc::WorkerInfo& from);

  // --- What RRefService passes on.

  //   kInvalidArgument  a limit is not positive.
  absl::Status Start();
  void OnWorkerLost(const rpc::WorkerInfo& worker, const absl::Status& status);
  async::Future<void> Drain(async::MonotonicTime deadline);
  // Nothing comes any more: whoever waits here for a value that was not made
  // yet gets kUnavailable.
  void Interrupt();
  void Stop();

  // Asks after references given away: all that were pending at the last call.
  // Made each audit_interval, whoever else calls it.
  void Audit();

  const rpc::WorkerInfo& self() const { return self_; }
  Counts counts() const;

 private:
  absl::StatusOr<ReceivedReference> ReceiveAsOwner(RRefId rref, ForkId fork,
                                                   const rpc::WorkerInfo& from);

  // As AwaitOwnValue, until `deadline`.
  async::Future<rpc::ErasedValue> AwaitUntil(RRefId rref,
                                             const OwnerValue& value,
                                             async::MonotonicTime deadline);

  // Handlers of the three methods.
  async::Future<rpc::Message<v1::RRefCreateReply>> HandleCreate(
      const rpc::MethodCall& call, rpc::Message<v1::RRefCreateRequest> request);
  async::Future<rpc::Message<v1::RRefFetchReply>> HandleFetch(
      const rpc::MethodCall& call, rpc::Message<v1::RRefFetchRequest> request);
  async::Future<rpc::Message<v1::RRefControlReply>> HandleControl(
      const rpc::MethodCall& call,
      rpc::Message<v1::RRefControlRequest> request);

  // Sending and answering of control operations: protocol_control.cc.
  v1::RRefControlResult Apply(const rpc::WorkerInfo& from,
                              const v1::RRefControlOperation& operation,
                              UserTable::Actions& users,
                              OwnerTable::Actions& owners);
  void Send(rpc::WorkerRun to, v1::RRefControlOperation operation);
  void Flush(rpc::WorkerRun to);
  void OnAnswer(const v1::RRefControlRequest& request,
                const v1::RRefControlReply& reply);
  void Run(UserTable::Actions actions);
  void Run(OwnerTable::Actions actions);
  // A member of the job is gone: remembered.
  void LoseWorker(rpc::WorkerRun run, const absl::Status& status);
  // A message named one that the job does not have: not remembered.
  void ForgetWorker(rpc::WorkerRun run, const absl::Status& status);
  void ScheduleAudit();

  // Moves a graceful shutdown on if what it waits for has happened.
  void AdvanceDrain();
  void FinishDrain(absl::Status status);
  std::string DescribeLeaks() const;

  const rpc::WorkerInfo self_;
  const rpc::WorkerRun self_run_;
  const RRefOptions options_;
  IdSource ids_;
  OwnerTable owners_;
  UserTable users_;
  ControlSender sender_;
  ControlReceiver receiver_;

  HostHandle host_;

  mutable async::Mutex mutex_;
  std::optional<async::TimerId> audit_timer_ ABSL_GUARDED_BY(mutex_);
  // Set by Drain; first the own copies settle, then the forks of others go.
  enum class DrainStep { kServing, kSettling, kClosing, kClosed, kDrained };
  DrainStep drain_step_ ABSL_GUARDED_BY(mutex_) = DrainStep::kServing;
  std::optional<async::Promise<void>> drained_ ABSL_GUARDED_BY(mutex_);
  std::optional<async::TimerId> drain_timer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::rref

#endif  // HAWSER_RREF_PROTOCOL_H_

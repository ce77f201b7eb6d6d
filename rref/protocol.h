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
#include "rpc/agent/host_handle.h"
#include "rpc/agent/service_host.h"
#include "rpc/identity/worker_run.h"
#include "rref/control_channel.h"
#include "rref/ids.h"
#include "rref/owner_table.h"
#include "rref/owner_value.h"
#include "rref/reference.h"
#include "rref/reference_limits.h"
#include "rref/user_table.h"
#include "tensor/tensor.h"

namespace hawser::rref {

struct RRefOptions {
  // Interval of audits. A fork that was given away and not acknowledged for one
  // to two intervals is withdrawn. A call that brings it later fails. Must be
  // positive.
  absl::Duration audit_interval = absl::Seconds(60);
  // Timeout of one attempt to deliver a batch of control operations.
  absl::Duration control_attempt_timeout = absl::Seconds(2);
  // Number of ended references to remember, per table.
  size_t tombstones = 65536;
  ReferenceLimits limits = {};
  // Makes graceful shutdown wait until other workers do not refer to values
  // here. Turn it off if other workers go on when one leaves.
  bool wait_for_users = true;
};

// The reference protocol of one worker, which connects the tables and the
// control channel to an agent. Described in docs/rref.md.
//
// Shared by the agent's RRefService and all References, which may outlive the
// agent: after Stop all operations return kFailedPrecondition. Thread-safe.
class Protocol : public std::enable_shared_from_this<Protocol> {
 public:
  using EncodeArguments = absl::FunctionRef<absl::Status(rpc::Encoder&)>;

  struct ReceivedReference {
    std::shared_ptr<Reference> reference;
    // Completes when the reference may be used. Invalid if it may be used now.
    async::Future<void> prerequisite;
  };

  struct Counts {
    OwnerTable::Counts owner;
    UserTable::Counts user;
    size_t control_operations = 0;
    // Numbers of peers with state in the receiving and in the sending end of
    // the control channel.
    size_t control_senders = 0;
    size_t control_receivers = 0;
  };

  Protocol(rpc::ServiceHost& host, RRefOptions options);

  // --- For references.

  // Runs a function on `to` and keeps its result there.
  absl::StatusOr<std::shared_ptr<Reference>> Create(
      const rpc::Destination& to, std::optional<absl::Duration> timeout,
      std::string_view function, std::string_view signature,
      EncodeArguments encode_arguments);

  // Like Create, for a creation whose message another layer sends.
  struct Creation {
    std::shared_ptr<Reference> reference;
    // Must be called once with the outcome.
    absl::AnyInvocable<void(const absl::Status&) &&> finish;
  };
  Creation BeginCreation(const rpc::WorkerInfo& owner);
  // The owner's side of the creation: returns the value to complete.
  absl::StatusOr<std::shared_ptr<OwnerValue>> ReceiveCreation(
      const v1::GlobalId& rref, const v1::GlobalId& fork,
      const rpc::WorkerInfo& creator);

  // Creates a reference to an object of this worker. Other workers do not know
  // it until it is shared.
  absl::StatusOr<std::shared_ptr<Reference>> MakeLocal(rpc::ErasedValue object);

  // Encodes a reference for a message to `to`, and decodes one from `from`.
  absl::StatusOr<v1::RRefReference> Share(const Reference& reference,
                                          const rpc::WorkerInfo& to);
  absl::StatusOr<ReceivedReference> Receive(const v1::RRefReference& reference,
                                            const rpc::WorkerInfo& from);

  // Makes requests to one owner. Returns the poller of futures that depend on
  // them; may be null.
  std::shared_ptr<async::WaitPoller> Fetch(
      std::vector<Reference::Fetch> fetches,
      std::optional<absl::Duration> timeout);
  // Returns the value of this worker's reference `rref` once it has been
  // created and may be read. Waits for up to `timeout` (unset: the agent's
  // default).
  async::Future<ReadableObject> AwaitOwnValue(
      RRefId rref, const std::shared_ptr<OwnerValue>& value,
      std::optional<absl::Duration> timeout);
  void Release(ForkId fork);
  void ReleaseEntry(RRefId rref);
  // The error kept with a user's copy.
  absl::Status Check(ForkId fork) const;

  // The value of a reference of this worker that a message from `from` names.
  absl::StatusOr<std::shared_ptr<OwnerValue>> FindValue(
      const v1::GlobalId& rref, const rpc::WorkerInfo& from);

  // --- For RRefService.

  //   kInvalidArgument  a limit is not positive.
  absl::Status Start();
  void OnWorkerLost(const rpc::WorkerInfo& worker, const absl::Status& status);
  async::Future<void> Drain(async::MonotonicTime deadline);
  // Messages do not arrive any more: fails with kUnavailable all waits for
  // values that have not been created.
  void Interrupt();
  void Stop();

  // Asks the receivers of forks that were given away before the last audit, and
  // not acknowledged, if they have arrived. Runs every audit_interval; may be
  // called at any other time too.
  void Audit();

  const rpc::WorkerInfo& self() const { return self_; }
  Counts counts() const;

 private:
  absl::StatusOr<ReceivedReference> ReceiveAsOwner(RRefId rref, ForkId fork,
                                                   const rpc::WorkerInfo& from);

  // Waits until `deadline` for `readable`, the object of `value`.
  async::Future<ReadableObject> AwaitUntil(
      RRefId rref, const OwnerValue& value,
      async::Future<ReadableObject> readable, async::MonotonicTime deadline);

  using FetchReply = rpc::Message<v1::RRefFetchReply>;
  struct FetchedValue;

  // Sends one request, which is not empty.
  std::shared_ptr<async::WaitPoller> SendFetch(
      std::vector<Reference::Fetch> fetches,
      std::optional<absl::Duration> timeout);
  // Passes a result to each of `fetches`, all of `owner`.
  void EndFetch(std::vector<Reference::Fetch>& fetches,
                const rpc::WorkerInfo& owner,
                const absl::StatusOr<FetchReply>& reply);
  void EndFetch(Reference::Fetch& fetch, const rpc::WorkerInfo& owner,
                const v1::RRefFetchedValue& value, std::vector<Tensor> tensors);

  // The value of one reference, once it has been created.
  // With access to it, if it is fetched `alone`.
  async::Future<FetchedValue> AwaitFetched(const v1::GlobalId& rref,
                                           const rpc::MethodCall& call,
                                           bool alone);
  // Gets access to all of `values` if they are free, otherwise to none.
  static bool AccessAll(std::vector<FetchedValue>& values);
  // The reply with `values` for `peer`.
  async::Future<FetchReply> EncodeValues(const rpc::WorkerInfo& peer,
                                         std::vector<FetchedValue> values,
                                         async::MonotonicTime deadline);

  // Handlers of the three methods.
  async::Future<rpc::Message<v1::RRefCreateReply>> HandleCreate(
      const rpc::MethodCall& call, rpc::Message<v1::RRefCreateRequest> request);
  async::Future<FetchReply> HandleFetch(
      const rpc::MethodCall& call, rpc::Message<v1::RRefFetchRequest> request);
  async::Future<rpc::Message<v1::RRefControlReply>> HandleControl(
      const rpc::MethodCall& call,
      rpc::Message<v1::RRefControlRequest> request);

  // Control operations: protocol_control.cc.
  v1::RRefControlResult Apply(const rpc::WorkerInfo& from,
                              const v1::RRefControlOperation& operation,
                              UserTable::Actions& users,
                              OwnerTable::Actions& owners);
  void Send(rpc::WorkerRun to, v1::RRefControlOperation operation);
  void Flush(rpc::WorkerRun to);
  void OnAnswer(rpc::WorkerRun from, const v1::RRefControlRequest& request,
                const v1::RRefControlReply& reply);
  void Run(UserTable::Actions actions);
  void Run(OwnerTable::Actions actions);
  // Handles the loss of a member of the job, which is remembered.
  void LoseWorker(rpc::WorkerRun run, const absl::Status& status);
  // Handles a worker that a message named and that is not in the job. It is not
  // remembered, so that messages cannot fill the memory.
  void ForgetWorker(rpc::WorkerRun run, const absl::Status& status);
  void ScheduleAudit();

  // Continues a graceful shutdown if the event for which it waits has happened.
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

  rpc::HostHandle host_;

  mutable async::Mutex mutex_;
  std::optional<async::TimerId> audit_timer_ ABSL_GUARDED_BY(mutex_);
  // Set by Drain. The copies of this worker settle first; then it waits for the
  // forks of other workers.
  enum class DrainStep { kServing, kSettling, kClosing, kClosed, kDrained };
  DrainStep drain_step_ ABSL_GUARDED_BY(mutex_) = DrainStep::kServing;
  std::optional<async::Promise<void>> drained_ ABSL_GUARDED_BY(mutex_);
  std::optional<async::TimerId> drain_timer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::rref

#endif  // HAWSER_RREF_PROTOCOL_H_

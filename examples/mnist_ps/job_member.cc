#include "examples/mnist_ps/job_member.h"

#include <utility>
#include <vector>

#include "async/future.h"
#include "async/join.h"
#include "async/status_macros.h"
#include "examples/mnist_ps/functions.h"
#include "net/auth/credentials.h"
#include "net/auth/identity.h"
#include "rpc/agent/agent.h"
#include "store/open_store.h"

namespace hawser::examples::mnist_ps {

absl::StatusOr<std::unique_ptr<JobMember>> JobMember::Join(
    const Options& options, rpc::FunctionRegistry& registry) {
  std::unique_ptr<JobMember> member(new JobMember);
  auto monitor = std::make_unique<JobMonitor>();
  member->monitor_ = monitor.get();
  RETURN_IF_ERROR(registry.Register(
      kEndJob, [monitor = monitor.get()](const std::string& reason) {
        monitor->End(reason.empty() ? absl::OkStatus()
                                    : absl::UnavailableError(reason));
      }));
  const bool is_server = options.role == Role::kServer;
  const net::Identity identity = IdentityOf(options);
  launch::WorkerOptions worker;
  worker.identity.name = identity.worker;
  worker.identity.job = identity.job;
  worker.network.credentials = options.credentials;
  worker.identity.rank =
      is_server ? options.index : options.num_servers + options.index;
  worker.identity.world_size = options.world_size();
  if (!options.bind_address.empty()) {
    worker.network.bind_address = options.bind_address;
  }
  worker.network.interface = options.interface;
  if (options.external_store) {
    ASSIGN_OR_RETURN(auto credentials,
                     net::Credentials::Create(options.credentials, identity));
    ASSIGN_OR_RETURN(member->store_,
                     store::OpenStore(options.master,
                                      {.credentials = std::move(credentials)}));
    worker.meeting_place.store = member->store_.get();
  } else {
    worker.meeting_place.url = options.master;
  }
  worker.limits.liveness.silent_limit = options.silent_limit;
  worker.registry = &registry;
  worker.services.push_back(std::move(monitor));
  ASSIGN_OR_RETURN(member->worker_, launch::Worker::Start(std::move(worker)));
  return member;
}

absl::Status JobMember::NotifyOthers(const rpc::CallOptions& options,
                                     const std::string& reason) {
  std::vector<async::Future<void>> calls;
  for (const rpc::WorkerInfo& worker : agent().workers()) {
    if (worker.id == agent().info().id || agent().IsLost(worker)) continue;
    calls.push_back(agent().Async(worker, options, kEndJob, reason));
  }
  return async::JoinAll(std::move(calls)).Wait();
}

absl::Status JobMember::EndJobEverywhere() { return NotifyOthers({}, ""); }

absl::Status JobMember::Leave(const absl::Status& outcome) {
  absl::Status cause = monitor_->Check();
  if (cause.ok()) cause = outcome;
  if (cause.ok()) return worker_->Shutdown();
  // Workers that do not receive this in time detect the failure themselves.
  NotifyOthers({.timeout = absl::Seconds(1)}, std::string(cause.message()))
      .IgnoreError();
  worker_->Shutdown(/*graceful=*/false).IgnoreError();
  return cause;
}

}  // namespace hawser::examples::mnist_ps

#include "launch/basic_worker.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "launch/environment.h"
#include "launch/master_endpoint.h"
#include "launch/metrics_endpoint.h"
#include "launch/network_interface.h"
#include "launch/process_place.h"
#include "launch/store_counters.h"
#include "net/auth/credentials.h"
#include "net/auth/identity.h"
#include "net/server/open_file_limit.h"
#include "rpc/functions/function_registry.h"
#include "rpc/grpc/transport.h"
#include "store/endpoint.h"
#include "store/grpc/server.h"
#include "store/grpc/store.h"
#include "store/open_store.h"
#include "store/store_url.h"
#include "telemetry/metrics.h"

namespace hawser::launch {
namespace {

// For the note on open files, in a job without a fixed number of workers.
constexpr int kWorkersOfAnElasticJob = 1000;

// Time for which rank 0 keeps serving the store while other workers leave.
constexpr absl::Duration kLeaveTimeout = absl::Seconds(10);

// Copies a number from the URL into `option`. Fails if both are set and differ.
absl::Status Agree(const char* what, std::optional<int> in_url,
                   std::optional<int>& option) {
  if (!in_url.has_value()) return absl::OkStatus();
  if (option.has_value() && *option != *in_url) {
    return absl::InvalidArgumentError(
        absl::StrCat("the ", what, " is ", *in_url, " in the store's URL and ",
                     *option, " in the options: set one of them"));
  }
  option = in_url;
  return absl::OkStatus();
}

// The URL from the options or the environment; env:// if neither has one.
absl::StatusOr<store::StoreUrl> InitUrl(const WorkerOptions& options) {
  const bool has_place = options.meeting_place.store != nullptr ||
                         !options.meeting_place.master_address.empty() ||
                         options.meeting_place.master_port.has_value();
  if (has_place && !options.meeting_place.url.empty()) {
    return absl::InvalidArgumentError(
        "meeting_place.url excludes store, master_address and master_port of "
        "meeting_place: set only one");
  }
  if (has_place) return store::StoreUrl();
  return store::ParseStoreUrl(
      StringOrEnvironment(options.meeting_place.url, "HAWSER_INIT", "env://"));
}

// Takes the rank and the world size that are not set from the launcher.
absl::Status TakePlace(const ProcessPlace& place, WorkerIdentity& identity) {
  const bool has_rank = identity.rank.has_value();
  if (!has_rank) identity.rank = place.rank;
  if (!identity.rank.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the worker's rank is missing: set identity.rank or the environment "
        "variable RANK, or start the worker by a launcher such as hawser run, "
        "mpirun or srun",
        place.role.empty() ? ""
                           : absl::StrCat("; the environment gives the role '",
                                          place.role, "' without a rank")));
  }
  // The shell of a SLURM job, in which a worker with a rank of its own may run,
  // describes another job.
  const bool is_for_any_rank = place.source == PlaceSource::kNone ||
                               place.source == PlaceSource::kTorchrun;
  if (!identity.world_size.has_value() && (!has_rank || is_for_any_rank)) {
    identity.world_size = place.world_size;
  }
  return absl::OkStatus();
}

// Completes the options from the environment and the defaults. Returns the URL
// of the store, which is env:// only if the user supplied the store.
absl::StatusOr<store::StoreUrl> Complete(WorkerOptions& options) {
  ASSIGN_OR_RETURN(store::StoreUrl url, InitUrl(options));
  WorkerIdentity& identity = options.identity;
  MeetingPlace& meeting = options.meeting_place;
  RETURN_IF_ERROR(Agree("rank", url.rank, identity.rank));
  RETURN_IF_ERROR(Agree("world size", url.world_size, identity.world_size));
  const bool has_rank = identity.rank.has_value();
  const bool needs_master =
      url.scheme == store::StoreUrl::Scheme::kEnv && meeting.store == nullptr;
  ProcessPlace place;
  if (needs_master || !has_rank || !identity.world_size.has_value()) {
    ASSIGN_OR_RETURN(place, PlaceFromEnvironment());
  }
  RETURN_IF_ERROR(TakePlace(place, identity));
  if (identity.world_size.has_value() &&
      (*identity.rank < 0 || *identity.rank >= *identity.world_size)) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", *identity.rank, " is outside the world of size ",
                     *identity.world_size, ": ranks begin at 0"));
  }
  if (!has_rank && !place.role.empty() && identity.roles.empty() &&
      net::WithEnvironment(options.network.credentials)
          .certificate_path.empty()) {
    identity.roles = {place.role};
  }
  url.world_size = identity.world_size;
  if (needs_master) {
    url.scheme = store::StoreUrl::Scheme::kTcp;
    if (meeting.master_address.empty()) {
      meeting.master_address = place.master_address;
    }
    if (!meeting.master_port.has_value()) {
      meeting.master_port = place.master_port;
    }
    ASSIGN_OR_RETURN(url.endpoint, MasterEndpoint(meeting.master_address,
                                                  meeting.master_port));
  }
  if (url.scheme == store::StoreUrl::Scheme::kTcp &&
      (url.endpoint.port < (*identity.rank == 0 ? 0 : 1) ||
       url.endpoint.port > 65535)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the master's port is ", url.endpoint.port,
                     "; it must be between 1 and 65535, or 0 at rank 0"));
  }
  const std::string interface =
      StringOrEnvironment(options.network.interface, "HAWSER_INTERFACE", "");
  if (!interface.empty()) {
    ASSIGN_OR_RETURN(store::Endpoint bind,
                     store::ParseEndpoint(options.network.bind_address));
    ASSIGN_OR_RETURN(bind.host, AddressOfInterface(interface));
    options.network.bind_address = ToString(bind);
  }
  if (identity.name.empty()) {
    identity.name = absl::StrCat("worker", *identity.rank);
  }
  return url;
}

// Null if there is no address.
absl::StatusOr<std::unique_ptr<MetricsEndpoint>> StartMetrics(
    const WorkerMetrics& options) {
  const std::string address =
      StringOrEnvironment(options.address, "HAWSER_METRICS_ADDRESS", "");
  if (address.empty()) return nullptr;
  return MetricsEndpoint::Start(address, options.allow_network);
}

}  // namespace

// One worker's access to the job's store, which rank 0 may serve.
class BasicWorker::StoreHost {
 public:
  static absl::StatusOr<std::unique_ptr<StoreHost>> Join(
      const WorkerOptions& options, const store::StoreUrl& url,
      const std::shared_ptr<const net::Credentials>& credentials) {
    auto host = std::make_unique<StoreHost>();
    host->world_size_ = options.identity.world_size.value_or(0);
    host->prefix_ = absl::StrCat("launch/", options.identity.job, "/");
    if (url.scheme != store::StoreUrl::Scheme::kTcp) {
      ASSIGN_OR_RETURN(
          host->store_,
          store::OpenStore(url, {.timeout = options.limits.join_timeout}));
      return host;
    }
    if (*options.identity.rank == 0) {
      store::StoreServerOptions server;
      server.host = url.endpoint.host;
      server.port = url.endpoint.port;
      server.credentials = credentials;
      server.allow_insecure_network = options.network.allow_insecure_network;
      ASSIGN_OR_RETURN(host->server_, store::StoreServer::Start(server));
    }
    host->master_ = host->server_ != nullptr ? host->server_->address()
                                             : ToString(url.endpoint);
    store::GrpcStoreOptions client;
    client.address = host->master_;
    client.timeout = options.limits.join_timeout;
    client.credentials = credentials;
    ASSIGN_OR_RETURN(host->store_, store::GrpcStore::Connect(client));
    return host;
  }

  store::Store* store() { return store_.get(); }
  // Null unless this is rank 0, serving the store.
  const store::StoreServer* server() const { return server_.get(); }
  const std::string& master() const { return master_; }

  // Reports that this worker no longer uses the store of rank 0. Rank 0 waits
  // up to kLeaveTimeout until all workers have reported.
  void Leave() {
    if (master_.empty() || world_size_ == 0) return;
    const std::string all_left = prefix_ + "all_left";
    (void)store_->SetTimeout(kLeaveTimeout);
    absl::StatusOr<int64_t> left = store_->Add(prefix_ + "left", 1);
    if (left.ok() && *left == world_size_) {
      store_->Set(all_left, "1").IgnoreError();
    }
    if (server_ != nullptr) {
      store_->Wait(std::vector<std::string>{all_left}).IgnoreError();
    }
  }

 private:
  int world_size_ = 0;
  std::string prefix_;
  // Empty unless rank 0 serves the store.
  std::string master_;
  std::unique_ptr<store::StoreServer> server_;
  std::unique_ptr<store::Store> store_;
};

absl::StatusOr<std::unique_ptr<BasicWorker>> BasicWorker::Start(
    WorkerOptions options) {
  std::unique_ptr<BasicWorker> worker(new BasicWorker());
  RETURN_IF_ERROR(worker->Join(
      std::move(options),
      [](const WorkerIdentity& /*identity*/) { return Services(); }));
  return worker;
}

absl::Status BasicWorker::Join(
    WorkerOptions options,
    absl::FunctionRef<Services(const WorkerIdentity&)> own_services) {
  if (options.network.grpc.credentials != nullptr ||
      options.network.grpc.allow_insecure_network) {
    return absl::InvalidArgumentError(
        "network.grpc sets credentials or allow_insecure_network: set those of "
        "network instead, which also apply to the store of rank 0");
  }
  ASSIGN_OR_RETURN(const store::StoreUrl url, Complete(options));
  ASSIGN_OR_RETURN(
      const std::shared_ptr<const net::Credentials> credentials,
      net::Credentials::Create(
          net::WithEnvironment(std::move(options.network.credentials)),
          net::Identity{.job = options.identity.job,
                        .worker = options.identity.name,
                        // A transport of the user verifies roles itself.
                        .roles = options.network.transport != nullptr
                                     ? std::vector<std::string>()
                                     : options.identity.roles}));
  // Others meet the same limit: one of them says it.
  if (*options.identity.rank == 0) {
    net::WarnIfFewOpenFiles(
        options.identity.world_size.value_or(kWorkersOfAnElasticJob));
  }
  // First, so that it shows a worker that waits for others.
  ASSIGN_OR_RETURN(metrics_, StartMetrics(options.metrics));
  store_ = options.meeting_place.store;
  if (store_ == nullptr) {
    ASSIGN_OR_RETURN(host_, StoreHost::Join(options, url, credentials));
    store_ = host_->store();
  }
  world_size_ = options.identity.world_size;

  rpc::AgentOptions agent;
  agent.name = options.identity.name;
  agent.rank = *options.identity.rank;
  agent.roles = options.identity.roles;
  agent.world_size = options.identity.world_size;
  agent.job = options.identity.job;
  agent.store = store_;
  agent.transport = std::move(options.network.transport);
  if (agent.transport == nullptr) {
    options.network.grpc.credentials = credentials;
    options.network.grpc.allow_insecure_network =
        options.network.allow_insecure_network;
    agent.transport =
        std::make_unique<rpc::GrpcTransport>(std::move(options.network.grpc));
  }
  agent.bind_address = options.network.bind_address;
  agent.advertise_address = options.network.advertise_address;
  agent.registry =
      options.registry != nullptr ? options.registry : empty_registry_.get();
  agent.default_timeout = options.limits.call_timeout;
  agent.start_timeout = options.limits.join_timeout;
  agent.shutdown_timeout = options.limits.join_timeout;
  agent.num_threads = options.limits.num_threads;
  agent.max_threads = options.limits.max_threads;
  agent.liveness = options.limits.liveness;
  agent.limits = options.limits.calls;
  agent.services = own_services(options.identity);
  if (host_ != nullptr && host_->server() != nullptr) {
    agent.services.push_back(std::make_unique<StoreCounters>(host_->server()));
  }
  std::vector<const telemetry::MetricSource*> sources;
  for (std::unique_ptr<rpc::Service>& service : options.services) {
    const auto* source = dynamic_cast<telemetry::MetricSource*>(service.get());
    if (source != nullptr) sources.push_back(source);
    agent.services.push_back(std::move(service));
  }
  agent.observers = std::move(options.observers);
  if (metrics_ != nullptr) {
    agent.observers.push_back(metrics_->calls());
  }
  ASSIGN_OR_RETURN(agent_, rpc::Agent::Start(std::move(agent)));
  if (metrics_ != nullptr) {
    metrics_->SetJoined(*agent_, std::move(sources));
  }
  return absl::OkStatus();
}

BasicWorker::BasicWorker()
    : empty_registry_(std::make_unique<rpc::FunctionRegistry>()) {}

BasicWorker::~BasicWorker() = default;

std::string BasicWorker::master() const {
  return host_ != nullptr ? host_->master() : "";
}

std::string BasicWorker::metrics_address() const {
  return metrics_ != nullptr ? metrics_->address() : "";
}

absl::Status BasicWorker::Shutdown(bool graceful) {
  if (metrics_ != nullptr) metrics_->SetLeaving();
  absl::Status status = agent_->Shutdown(graceful);
  // After a cancelled Shutdown, rank 0 does not wait for the other workers.
  if (graceful && host_ != nullptr && !absl::IsCancelled(status)) {
    std::call_once(left_, [this] { host_->Leave(); });
  }
  return status;
}

}  // namespace hawser::launch

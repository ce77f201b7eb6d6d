#include "launch/worker.h"

#include <charconv>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "dist_autograd/dist_autograd_service.h"
#include "dist_optim/dist_optim_service.h"
#include "launch/network_interface.h"
#include "net/auth/credentials.h"
#include "net/auth/identity.h"
#include "rpc/grpc/transport.h"
#include "rpc/stream/stream_service.h"
#include "rref/rref_service.h"
#include "store/endpoint.h"
#include "store/grpc/server.h"
#include "store/grpc/store.h"
#include "store/open_store.h"
#include "store/store_url.h"

namespace hawser::launch {
namespace {

constexpr int kDefaultMasterPort = 29500;
// How long rank 0 keeps the store for workers that are about to leave.
constexpr absl::Duration kLeaveTimeout = absl::Seconds(10);

// `value`, or else that of the environment variable `variable`; none if neither
// is given.
absl::StatusOr<std::optional<int>> IntOrEnvironment(std::optional<int> value,
                                                    const char* variable) {
  if (value.has_value()) return value;
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::optional<int>();
  const std::string_view view(text);
  int number = 0;
  const auto [end, error] =
      std::from_chars(view.data(), view.data() + view.size(), number);
  if (error != std::errc() || end != view.data() + view.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the environment's ",
                                                   variable, " is '", text,
                                                   "'; it must be a number"));
  }
  return std::optional<int>(number);
}

std::string StringOrEnvironment(const std::string& value, const char* variable,
                                const char* otherwise) {
  if (!value.empty()) return value;
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : text;
}

// A number that the URL may say too.
absl::Status Agree(const char* what, std::optional<int> in_url,
                   std::optional<int>& option) {
  if (!in_url.has_value()) return absl::OkStatus();
  if (option.has_value() && *option != *in_url) {
    return absl::InvalidArgumentError(
        absl::StrCat("the ", what, " is ", *in_url, " in the store's URL and ",
                     *option, " in the options"));
  }
  option = in_url;
  return absl::OkStatus();
}

// The URL that the options or the environment name; env:// if none.
absl::StatusOr<store::StoreUrl> InitUrl(const WorkerOptions& options) {
  const bool has_place = options.store != nullptr ||
                         !options.master_address.empty() ||
                         options.master_port.has_value();
  if (has_place && !options.init_url.empty()) {
    return absl::InvalidArgumentError(
        "init_url excludes store, master_address and master_port: give one");
  }
  if (has_place) return store::StoreUrl();
  return store::ParseStoreUrl(
      StringOrEnvironment(options.init_url, "HAWSER_INIT", "env://"));
}

// Where rank 0 keeps the store.
absl::StatusOr<store::Endpoint> Master(const WorkerOptions& options) {
  store::Endpoint master;
  master.host =
      StringOrEnvironment(options.master_address, "MASTER_ADDR", "127.0.0.1");
  ASSIGN_OR_RETURN(const std::optional<int> port,
                   IntOrEnvironment(options.master_port, "MASTER_PORT"));
  master.port = port.value_or(kDefaultMasterPort);
  return master;
}

// Fills in what the environment or a default decides; returns where the workers
// meet, which is not env://.
absl::StatusOr<store::StoreUrl> Complete(WorkerOptions& options) {
  ASSIGN_OR_RETURN(store::StoreUrl url, InitUrl(options));
  RETURN_IF_ERROR(Agree("rank", url.rank, options.rank));
  RETURN_IF_ERROR(Agree("world size", url.world_size, options.world_size));
  ASSIGN_OR_RETURN(options.rank, IntOrEnvironment(options.rank, "RANK"));
  if (!options.rank.has_value()) {
    return absl::InvalidArgumentError(
        "the worker's rank is neither given nor in the environment as RANK");
  }
  ASSIGN_OR_RETURN(options.world_size,
                   IntOrEnvironment(options.world_size, "WORLD_SIZE"));
  if (options.world_size.has_value() &&
      (*options.rank < 0 || *options.rank >= *options.world_size)) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", *options.rank, " of a world of ",
                     *options.world_size, " workers"));
  }
  url.world_size = options.world_size;
  if (url.scheme == store::StoreUrl::Scheme::kEnv) {
    url.scheme = store::StoreUrl::Scheme::kTcp;
    ASSIGN_OR_RETURN(url.endpoint, Master(options));
  }
  if (url.scheme == store::StoreUrl::Scheme::kTcp &&
      (url.endpoint.port < (*options.rank == 0 ? 0 : 1) ||
       url.endpoint.port > 65535)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the master's port is ", url.endpoint.port,
                     "; it must be between 1 and 65535, or 0 at rank 0"));
  }
  const std::string interface =
      StringOrEnvironment(options.interface, "HAWSER_INTERFACE", "");
  if (!interface.empty()) {
    ASSIGN_OR_RETURN(store::Endpoint bind,
                     store::ParseEndpoint(options.bind_address));
    ASSIGN_OR_RETURN(bind.host, AddressOfInterface(interface));
    options.bind_address = ToString(bind);
  }
  if (options.name.empty()) {
    options.name = absl::StrCat("worker", *options.rank);
  }
  return url;
}

}  // namespace

// The store at which workers meet, as seen from one of them.
class Worker::StoreHost {
 public:
  static absl::StatusOr<std::unique_ptr<StoreHost>> Join(
      const WorkerOptions& options, const store::StoreUrl& url,
      const std::shared_ptr<const net::Credentials>& credentials) {
    auto host = std::make_unique<StoreHost>();
    host->world_size_ = options.world_size.value_or(0);
    host->prefix_ = absl::StrCat("launch/", options.job, "/");
    if (url.scheme != store::StoreUrl::Scheme::kTcp) {
      ASSIGN_OR_RETURN(
          host->store_,
          store::OpenStore(url, {.timeout = options.join_timeout}));
      return host;
    }
    if (*options.rank == 0) {
      store::StoreServerOptions server;
      server.host = url.endpoint.host;
      server.port = url.endpoint.port;
      server.credentials = credentials;
      server.allow_insecure_network = options.allow_insecure_network;
      ASSIGN_OR_RETURN(host->server_, store::StoreServer::Start(server));
    }
    host->master_ = host->server_ != nullptr ? host->server_->address()
                                             : ToString(url.endpoint);
    store::GrpcStoreOptions client;
    client.address = host->master_;
    client.timeout = options.join_timeout;
    client.credentials = credentials;
    ASSIGN_OR_RETURN(host->store_, store::GrpcStore::Connect(client));
    return host;
  }

  store::Store* store() { return store_.get(); }
  const std::string& master() const { return master_; }

  // Says that this worker is through with the store of rank 0, which waits, a
  // while, until all are.
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
  // Empty where rank 0 keeps none.
  std::string master_;
  std::unique_ptr<store::StoreServer> server_;
  std::unique_ptr<store::Store> store_;
};

absl::StatusOr<std::unique_ptr<Worker>> Worker::Start(WorkerOptions options) {
  if (options.grpc.credentials != nullptr ||
      options.grpc.allow_insecure_network) {
    return absl::InvalidArgumentError(
        "WorkerOptions::grpc has credentials or allow_insecure_network: set "
        "those of WorkerOptions, which hold for the store as well");
  }
  ASSIGN_OR_RETURN(const store::StoreUrl url, Complete(options));
  ASSIGN_OR_RETURN(
      const std::shared_ptr<const net::Credentials> credentials,
      net::Credentials::Create(
          net::WithEnvironment(std::move(options.credentials)),
          net::Identity{.job = options.job,
                        .worker = options.name,
                        // A transport of the user's proves them elsewhere.
                        .roles = options.transport != nullptr
                                     ? std::vector<std::string>()
                                     : options.roles}));
  std::unique_ptr<StoreHost> host;
  store::Store* store = options.store;
  if (store == nullptr) {
    ASSIGN_OR_RETURN(host, StoreHost::Join(options, url, credentials));
    store = host->store();
  }
  std::unique_ptr<Worker> worker(
      new Worker(options.world_size, std::move(host), store));

  rpc::AgentOptions agent;
  agent.name = options.name;
  agent.rank = *options.rank;
  agent.roles = std::move(options.roles);
  agent.world_size = options.world_size;
  agent.job = options.job;
  agent.store = store;
  agent.transport = std::move(options.transport);
  if (agent.transport == nullptr) {
    options.grpc.credentials = credentials;
    options.grpc.allow_insecure_network = options.allow_insecure_network;
    agent.transport =
        std::make_unique<rpc::GrpcTransport>(std::move(options.grpc));
  }
  agent.bind_address = options.bind_address;
  agent.advertise_address = options.advertise_address;
  agent.registry = options.registry != nullptr ? options.registry
                                               : worker->empty_registry_.get();
  agent.default_timeout = options.timeout;
  agent.start_timeout = options.join_timeout;
  agent.shutdown_timeout = options.join_timeout;
  agent.num_threads = options.num_threads;
  agent.max_threads = options.max_threads;
  agent.liveness = options.liveness;
  agent.limits = options.call_limits;
  agent.services.push_back(
      std::make_unique<rpc::StreamService>(options.stream_limits));
  rref::RRefOptions references;
  references.limits = options.reference_limits;
  references.wait_for_users = options.world_size.has_value();
  agent.services.push_back(std::make_unique<rref::RRefService>(references));
  agent.services.push_back(std::make_unique<dist_autograd::DistAutogradService>(
      dist_autograd::DistAutogradOptions{.limits = options.context_limits}));
  agent.services.push_back(std::make_unique<dist_optim::DistOptimService>());
  for (std::unique_ptr<rpc::Service>& service : options.services) {
    agent.services.push_back(std::move(service));
  }
  ASSIGN_OR_RETURN(worker->agent_, rpc::Agent::Start(std::move(agent)));
  return worker;
}

Worker::Worker(std::optional<int> world_size, std::unique_ptr<StoreHost> host,
               store::Store* store)
    : world_size_(world_size),
      host_(std::move(host)),
      store_(store),
      empty_registry_(std::make_unique<rpc::FunctionRegistry>()) {}

Worker::~Worker() = default;

std::string Worker::master() const {
  return host_ != nullptr ? host_->master() : "";
}

absl::Status Worker::Shutdown(bool graceful) {
  absl::Status status = agent_->Shutdown(graceful);
  // Who cut it short waits for nobody.
  if (graceful && host_ != nullptr && !absl::IsCancelled(status)) {
    std::call_once(left_, [this] { host_->Leave(); });
  }
  return status;
}

}  // namespace hawser::launch

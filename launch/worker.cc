#include "launch/worker.h"

#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "dist_autograd/dist_autograd_service.h"
#include "dist_optim/dist_optim_service.h"
#include "rpc/grpc/transport.h"
#include "rref/rref_service.h"
#include "store/grpc_store.h"
#include "store/store_server.h"

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

// Fills in what the environment or a default decides.
absl::Status Complete(WorkerOptions& options) {
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
  options.master_address =
      StringOrEnvironment(options.master_address, "MASTER_ADDR", "127.0.0.1");
  ASSIGN_OR_RETURN(options.master_port,
                   IntOrEnvironment(options.master_port, "MASTER_PORT"));
  if (!options.master_port.has_value()) {
    options.master_port = kDefaultMasterPort;
  }
  if (*options.master_port < (*options.rank == 0 ? 0 : 1) ||
      *options.master_port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("the master's port is ", *options.master_port,
                     "; it must be between 1 and 65535, or 0 at rank 0"));
  }
  if (options.name.empty()) {
    options.name = absl::StrCat("worker", *options.rank);
  }
  return absl::OkStatus();
}

}  // namespace

// The store that rank 0 keeps, as seen from one worker.
class Worker::StoreHost {
 public:
  static absl::StatusOr<std::unique_ptr<StoreHost>> Join(
      const WorkerOptions& options) {
    auto host = std::make_unique<StoreHost>();
    host->world_size_ = options.world_size.value_or(0);
    host->prefix_ = absl::StrCat("launch/", options.job, "/");
    if (*options.rank == 0) {
      store::StoreServerOptions server;
      server.host = options.master_address;
      server.port = *options.master_port;
      ASSIGN_OR_RETURN(host->server_,
                       store::StoreServer::Start(std::move(server)));
    }
    host->master_ =
        host->server_ != nullptr
            ? host->server_->address()
            : absl::StrCat(options.master_address, ":", *options.master_port);
    store::GrpcStoreOptions client;
    client.address = host->master_;
    client.timeout = options.join_timeout;
    ASSIGN_OR_RETURN(host->store_,
                     store::GrpcStore::Connect(std::move(client)));
    return host;
  }

  store::Store* store() { return store_.get(); }
  const std::string& master() const { return master_; }

  // Says that this worker is through with the store; at rank 0 waits, a while,
  // until all are.
  void Leave() {
    if (world_size_ == 0) return;
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
  std::string master_;
  std::unique_ptr<store::StoreServer> server_;
  std::unique_ptr<store::GrpcStore> store_;
};

absl::StatusOr<std::unique_ptr<Worker>> Worker::Start(WorkerOptions options) {
  RETURN_IF_ERROR(Complete(options));
  std::unique_ptr<StoreHost> host;
  store::Store* store = options.store;
  if (store == nullptr) {
    ASSIGN_OR_RETURN(host, StoreHost::Join(options));
    store = host->store();
  }
  std::unique_ptr<Worker> worker(
      new Worker(options.world_size, std::move(host), store));

  rpc::AgentOptions agent;
  agent.name = options.name;
  agent.rank = *options.rank;
  agent.world_size = options.world_size;
  agent.job = options.job;
  agent.store = store;
  agent.transport = options.transport != nullptr
                        ? std::move(options.transport)
                        : std::make_unique<rpc::GrpcTransport>();
  agent.bind_address = options.bind_address;
  agent.registry = options.registry != nullptr ? options.registry
                                               : worker->empty_registry_.get();
  agent.default_timeout = options.timeout;
  agent.start_timeout = options.join_timeout;
  agent.shutdown_timeout = options.join_timeout;
  agent.num_threads = options.num_threads;
  agent.liveness = options.liveness;
  rref::RRefOptions references;
  references.wait_for_users = options.world_size.has_value();
  agent.services.push_back(std::make_unique<rref::RRefService>(references));
  agent.services.push_back(
      std::make_unique<dist_autograd::DistAutogradService>());
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
  if (graceful && host_ != nullptr) {
    std::call_once(left_, [this] { host_->Leave(); });
  }
  return status;
}

}  // namespace hawser::launch

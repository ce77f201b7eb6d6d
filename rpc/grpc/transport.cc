#include "rpc/grpc/transport.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "grpcpp/server_builder.h"
#include "net/auth/credentials.h"
#include "net/grpc/initialize.h"
#include "net/grpc/shared_queue.h"
#include "net/health/health.h"
#include "net/server/insecure_network_warning.h"
#include "net/server/listener.h"
#include "net/server/open_file_limit.h"
#include "net/tcp_prober.h"
#include "rpc/grpc/call_stream/call_stream_server.h"
#include "rpc/grpc/connection_factory.h"
#include "rpc/grpc/health_calls.h"
#include "rpc/grpc/limits.h"
#include "rpc/grpc/poller.h"
#include "rpc/grpc/server.h"
#include "rpc/grpc/tuning/loopback_socket.h"
#include "rpc/grpc/tuning/malloc_tuning.h"
#include "rpc/link/unread_replies.h"
#include "rpc/same_host/same_host.h"

namespace hawser::rpc {
namespace {

// Multiple of `spin`, since two processes have to wake up.
constexpr int kSocketRoundTrip = 4;

// "hawser.v1.WorkerService" of "/hawser.v1.WorkerService/Call".
std::vector<std::string> ServicesOf(
    const std::vector<TransportMethod>& methods) {
  std::vector<std::string> services;
  for (const TransportMethod& method : methods) {
    const size_t end = method.path.find('/', 1);
    std::string service = method.path.substr(1, end - 1);
    if (std::find(services.begin(), services.end(), service) ==
        services.end()) {
      services.push_back(std::move(service));
    }
  }
  return services;
}

absl::StatusOr<std::unique_ptr<net::Listener>> OpenListener(
    absl::string_view address, const GrpcTransportOptions& options, bool tls) {
  const GrpcLimits& limits = options.limits;
  const auto tuning = std::make_shared<ServerSocketTuning>();
  absl::StatusOr<std::unique_ptr<net::Listener>> listener = net::Listener::Open(
      std::string_view(address.data(), address.size()),
      {.max_connections = limits.max_connections,
       .max_connections_per_address = limits.max_connections_per_address,
       .max_calls_per_connection = limits.max_calls_per_connection,
       .max_message_bytes =
           std::min(options.max_message_bytes, limits.max_whole_request_bytes),
       .memory_watermark_bytes = limits.memory_watermark_bytes.value_or(0),
       .reserved_descriptors = limits.reserved_descriptors,
       .tls = tls,
       .prepare_listening = [tuning](int fd) { tuning->OnListening(fd); },
       .prepare = [tuning](int fd) { tuning->OnAccepted(fd); }});
  if (absl::IsAlreadyExists(listener.status())) {
    // kAlreadyExists would be mistaken for a worker's name being taken.
    return absl::UnavailableError(listener.status().message());
  }
  return listener;
}

PollerOptions PollerOptionsFor(const GrpcTransportOptions& options) {
  return {.num_threads = options.num_polling_threads,
          .busy = options.busy_poll,
          .spin = options.spin};
}

}  // namespace

class GrpcTransport::Impl {
 public:
  explicit Impl(GrpcTransportOptions options)
      : options_(std::move(options)),
        credentials_(options_.credentials != nullptr
                         ? options_.credentials
                         : net::Credentials::Insecure()),
        reply_quota_(MakeReplyQuota(MemoryQuotaBytes(options_.limits),
                                    options_.max_message_bytes)) {
    net::InitializeGrpc();
    if (options_.tune_malloc) TuneMalloc();
    net::RaiseOpenFileLimit();
    if (options_.same_host) {
      same_host_.emplace(
          SameHost::Options{.max_message_bytes = options_.max_message_bytes,
                            .reply_quota = reply_quota_,
                            .spin = options_.busy_poll
                                        ? absl::InfiniteDuration()
                                        : options_.spin},
          gate_);
    }
  }

  absl::StatusOr<std::string> Listen(absl::string_view address,
                                     std::vector<TransportMethod> methods);
  absl::StatusOr<std::shared_ptr<Connection>> Connect(
      const ConnectionTarget& target);
  const net::Credentials& credentials() const { return *credentials_; }
  net::TcpProber& prober() { return prober_; }
  // Whether clients may combine calls into a stream: nothing is checked or
  // limited for each call of gRPC.
  bool MayCombineCalls() const;
  void StartPoller(std::unique_ptr<::grpc::CompletionQueue> queue)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<net::Health> health();
  std::map<std::string, int64_t> DebugNumbers() const;
  void Shutdown();

 private:
  const GrpcTransportOptions options_;
  const std::shared_ptr<const net::Credentials> credentials_;
  // For replies that clients have not read.
  const std::shared_ptr<net::PerPeerQuota> reply_quota_;
  // Entered before starting an operation on the queue.
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  // Unset if disabled.
  std::optional<SameHost> same_host_;
  net::TcpProber prober_;

  mutable async::Mutex mutex_;
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;
  // One queue for both directions: threads that serve also receive replies.
  std::unique_ptr<Poller> poller_ ABSL_GUARDED_BY(mutex_);
  // Shares that queue.
  std::optional<net::SharedQueue> shared_queue_ ABSL_GUARDED_BY(mutex_);
  // Set with the first connection.
  std::optional<ConnectionFactory> factory_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<net::InsecureNetworkWarning> warning_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<net::Health> health_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<HealthCalls> health_calls_ ABSL_GUARDED_BY(mutex_);
  // Null if they are not served. Destroyed after the server.
  std::unique_ptr<CallStreamServer> call_streams_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<GrpcServer> server_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<net::Listener> listener_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<Connection>> connections_ ABSL_GUARDED_BY(mutex_);
  // One shutdown at a time.
  async::Mutex shutdown_mutex_;
};

bool GrpcTransport::Impl::MayCombineCalls() const {
  const GrpcLimits& limits = options_.limits;
  return !credentials_->has_authorization_policy() &&
         options_.max_message_bytes >= kMinStreamLimit &&
         limits.max_connection_idle == absl::InfiniteDuration() &&
         limits.max_connection_age == absl::InfiniteDuration();
}

void GrpcTransport::Impl::StartPoller(
    std::unique_ptr<::grpc::CompletionQueue> queue) {
  poller_ =
      std::make_unique<Poller>(std::move(queue), PollerOptionsFor(options_));
  shared_queue_.emplace(poller_->queue());
}

absl::StatusOr<std::string> GrpcTransport::Impl::Listen(
    absl::string_view address, std::vector<TransportMethod> methods) {
  const bool exposed =
      !IsLoopback(std::string_view(address.data(), address.size()));
  if (exposed) {
    RETURN_IF_ERROR(credentials_->CheckMayListen(
        std::string_view(address.data(), address.size()),
        options_.allow_insecure_network));
  }
  async::MutexLock lock(&mutex_);
  if (shut_down_ || poller_ != nullptr) {
    return absl::FailedPreconditionError(
        "Listen must be called once, before Connect");
  }
  RETURN_IF_ERROR(Validate(options_.limits));
  ASSIGN_OR_RETURN(std::unique_ptr<net::Listener> listener,
                   OpenListener(address, options_, credentials_->has_tls()));
  // The operator's policy cannot check calls through shared memory.
  if (same_host_.has_value() && !credentials_->has_authorization_policy()) {
    methods.push_back(same_host_->Serve(methods));
  }
  const std::vector<TransportMethod> combinable = methods;
  ::grpc::ServerBuilder builder;
  ConfigureServer(options_.limits, options_.max_message_bytes, builder);
  listener->AttachTo(builder, credentials_->ForServer());
  std::unique_ptr<::grpc::ServerCompletionQueue> queue =
      builder.AddCompletionQueue();
  auto health = std::make_shared<net::Health>(ServicesOf(methods));
  auto health_calls =
      std::make_unique<HealthCalls>(health, builder, queue.get(), gate_);
  auto server = std::make_unique<GrpcServer>(
      std::move(methods), builder, queue.get(), gate_, credentials_,
      reply_quota_, options_.max_message_bytes, options_.limits);
  std::unique_ptr<CallStreamServer> call_streams;
  if (MayCombineCalls()) {
    call_streams = std::make_unique<CallStreamServer>(
        CallStreamServer::Options{
            .methods = combinable,
            .queue = queue.get(),
            .gate = gate_,
            .credentials = credentials_,
            .max_message_bytes = options_.max_message_bytes,
            .reply_quota = reply_quota_},
        builder);
  }
  std::unique_ptr<::grpc::Server> built = builder.BuildAndStart();
  if (built == nullptr) {
    queue->Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue->Next(&tag, &ok)) {
    }
    return absl::UnavailableError(absl::StrCat(
        "cannot serve at '", address, "': gRPC cannot start the server"));
  }
  if (exposed && !credentials_->has_tls()) {
    warning_ =
        std::make_unique<net::InsecureNetworkWarning>(listener->address());
  }
  server->Start(std::move(built));
  server_ = std::move(server);
  health_calls->Start();
  health_ = std::move(health);
  health_calls_ = std::move(health_calls);
  StartPoller(std::move(queue));
  if (call_streams != nullptr) call_streams->Start(poller_.get());
  call_streams_ = std::move(call_streams);
  listener->Start([poller = poller_.get()](async::MonotonicTime now) {
    poller->Relieve(now);
  });
  listener_ = std::move(listener);
  return listener_->address();
}

absl::StatusOr<std::shared_ptr<Connection>> GrpcTransport::Impl::Connect(
    const ConnectionTarget& target) {
  async::MutexLock lock(&mutex_);
  if (shut_down_) {
    return absl::CancelledError("the transport was shut down");
  }
  if (poller_ == nullptr) {
    StartPoller(std::make_unique<::grpc::CompletionQueue>());
  }
  if (!factory_.has_value()) {
    factory_.emplace(ConnectionFactory::Options{
        .poller = poller_.get(),
        .gate = gate_,
        .credentials = credentials_,
        .max_message_bytes = options_.max_message_bytes,
        .memory_quota_bytes = MemoryQuotaBytes(options_.limits),
        // With busy polling it would compete for the core of a polling thread.
        .spin = options_.busy_poll ? absl::ZeroDuration()
                                   : kSocketRoundTrip * options_.spin});
  }
  std::shared_ptr<Connection> connection = factory_->Make(target);
  if (same_host_.has_value()) {
    connection = same_host_->Wrap(std::move(connection));
  }
  std::erase_if(connections_, [](const auto& weak) { return weak.expired(); });
  connections_.push_back(connection);
  return connection;
}

std::shared_ptr<net::Health> GrpcTransport::Impl::health() {
  async::MutexLock lock(&mutex_);
  return health_;
}

// 1. Stops accepting connections, ends health watches, aborts the server's
//    calls and cancels own calls.
// 2. Prevents new operations, also of others, and drains the queue and the
// shared memory, which
//    runs the last callbacks.
// 3. Releases gRPC's objects of calls that handlers still refer to.
void GrpcTransport::Impl::Shutdown() {
  async::MutexLock shutdown_lock(&shutdown_mutex_);
  std::vector<std::weak_ptr<Connection>> connections;
  GrpcServer* server = nullptr;
  Poller* poller = nullptr;
  net::Listener* listener = nullptr;
  CallStreamServer* call_streams = nullptr;
  std::shared_ptr<net::Health> health;
  net::SharedQueue* shared_queue = nullptr;
  {
    async::MutexLock lock(&mutex_);
    if (std::exchange(shut_down_, true)) return;
    connections.swap(connections_);
    server = server_.get();
    call_streams = call_streams_.get();
    poller = poller_.get();
    listener = listener_.get();
    health = health_;
    if (shared_queue_.has_value()) shared_queue = &*shared_queue_;
  }
  const auto close_connections = [&] {
    for (const auto& weak : connections) {
      if (auto connection = weak.lock()) {
        connection->Close(absl::CancelledError("the transport was shut down"));
      }
    }
  };
  close_connections();
  if (listener != nullptr) listener->Stop();
  if (health != nullptr) health->Close();
  if (call_streams != nullptr) call_streams->Stop();
  if (server != nullptr) server->Stop();
  if (same_host_.has_value()) same_host_->Stop();
  prober_.Stop();
  gate_->Close();
  if (shared_queue != nullptr) shared_queue->Withdraw();
  if (poller != nullptr) poller->Shutdown();
  if (same_host_.has_value()) same_host_->Shutdown();
  if (call_streams != nullptr) call_streams->Release();
  if (server != nullptr) server->Release();
}

std::map<std::string, int64_t> GrpcTransport::Impl::DebugNumbers() const {
  async::MutexLock lock(&mutex_);
  if (listener_ == nullptr) return {};
  std::map<std::string, int64_t> numbers = {
      {"connections_accepted", listener_->num_accepted()},
      {"connections_refused", listener_->num_refused()},
      {"connections_closed", listener_->num_closed()}};
  if (call_streams_ != nullptr) {
    numbers["call_streams_accepted"] = call_streams_->num_accepted();
    numbers["call_stream_calls"] = call_streams_->num_calls();
  }
  return numbers;
}

GrpcTransport::GrpcTransport(GrpcTransportOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}

GrpcTransport::~GrpcTransport() { Shutdown(); }

absl::StatusOr<std::string> GrpcTransport::Listen(
    std::string_view address, std::vector<TransportMethod> methods) {
  return impl_->Listen(absl::string_view(address.data(), address.size()),
                       std::move(methods));
}

absl::StatusOr<std::shared_ptr<Connection>> GrpcTransport::Connect(
    const ConnectionTarget& target) {
  return impl_->Connect(target);
}

void GrpcTransport::Probe(const std::string& address, absl::Duration timeout,
                          absl::AnyInvocable<void(absl::Status) &&> done) {
  impl_->prober().Probe(address, timeout, std::move(done));
}

std::optional<net::Identity> GrpcTransport::identity() const {
  if (!impl_->credentials().has_tls()) return std::nullopt;
  return impl_->credentials().self();
}

void GrpcTransport::SetRoles(const std::vector<std::string>& roles) {
  if (const auto health = impl_->health()) health->AddRoles(roles);
}

void GrpcTransport::SetServing(bool serving) {
  if (const auto health = impl_->health()) health->SetServing(serving);
}

std::map<std::string, int64_t> GrpcTransport::DebugNumbers() const {
  return impl_->DebugNumbers();
}

void GrpcTransport::Shutdown() { impl_->Shutdown(); }

}  // namespace hawser::rpc

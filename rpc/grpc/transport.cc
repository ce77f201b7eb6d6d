#include "rpc/grpc/transport.h"

#include <sys/resource.h>

#include <algorithm>
#include <climits>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "async/mutex.h"
#include "grpc/compression.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/channel_arguments.h"
#include "net/insecure_network_warning.h"
#include "rpc/grpc/connection.h"
#include "rpc/grpc/loopback_socket.h"
#include "rpc/grpc/poller.h"
#include "rpc/grpc/server.h"
#include "store/grpc_lifetime.h"

namespace hawser::rpc {
namespace {

// Both ends' keepalive: a mismatch makes the server close the connection.
constexpr int kKeepaliveTimeMs = 10'000;
constexpr int kKeepaliveTimeoutMs = 5'000;
constexpr int kMinPingIntervalMs = 5'000;

constexpr int kMinReconnectMs = 100;
constexpr int kMaxReconnectMs = 2'000;

// Above GrpcConnection's number of calls per channel.
constexpr int kMaxConcurrentStreams = 256;
constexpr int kMaxMetadataBytes = 8 << 10;
constexpr int kHandshakeTimeoutMs = 10'000;

int ToIntLimit(size_t bytes) {
  return static_cast<int>(std::min<size_t>(bytes, INT_MAX));
}

// gRPC 1.51 stops accepting for good once it has run out of descriptors.
void RaiseOpenFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

absl::string_view HostOf(absl::string_view address) {
  if (absl::StartsWith(address, "[")) {
    return address.substr(1, address.find(']') - 1);
  }
  return address.substr(0, address.rfind(':'));
}

bool IsLoopback(absl::string_view address) {
  if (absl::StartsWith(address, "unix:")) return true;
  const absl::string_view host = HostOf(address);
  if (host == "localhost" || host == "::1") return true;
  // 127.0.0.0/8, written in full: anything else may be a host's name.
  int dots = 0;
  for (char c : host) {
    if (c == '.') {
      ++dots;
    } else if (c < '0' || c > '9') {
      return false;
    }
  }
  return dots == 3 && absl::StartsWith(host, "127.");
}

std::string WithPort(absl::string_view address, int port) {
  if (absl::StartsWith(address, "unix:")) return std::string(address);
  return absl::StrCat(address.substr(0, address.rfind(':')), ":", port);
}

::grpc::ChannelArguments ChannelArgumentsFor(int max_message_bytes) {
  ::grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(max_message_bytes);
  arguments.SetMaxSendMessageSize(max_message_bytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kMinReconnectMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kMaxReconnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMaxReconnectMs);
  // Workers of one process, and channels of one worker, do not share
  // connections.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // A user call must not be sent twice.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET,
                   1 << GRPC_COMPRESS_NONE);
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  return arguments;
}

void Configure(::grpc::ServerBuilder& builder, int max_message_bytes) {
  builder.SetMaxReceiveMessageSize(max_message_bytes);
  builder.SetMaxSendMessageSize(max_message_bytes);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                             kKeepaliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
      kMinPingIntervalMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                             kMaxConcurrentStreams);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             kHandshakeTimeoutMs);
  // A port in use is an error, not shared.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // gRPC decompresses before it looks at the size.
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
}

}  // namespace

class GrpcTransport::Impl {
 public:
  explicit Impl(GrpcTransportOptions options)
      : options_(std::move(options)),
        credentials_(options_.credentials != nullptr
                         ? options_.credentials
                         : net::Credentials::Insecure()) {
    store::KeepGrpcLoaded();
    RaiseOpenFileLimit();
  }

  absl::StatusOr<std::string> Listen(absl::string_view address,
                                     std::vector<TransportMethod> methods);
  absl::StatusOr<std::shared_ptr<Connection>> Connect(
      const ConnectionTarget& target);
  void Shutdown();

 private:
  const GrpcTransportOptions options_;
  const std::shared_ptr<const net::Credentials> credentials_;
  // Passed by what begins an operation on the queue.
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();

  async::Mutex mutex_;
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;
  // One queue for both directions: threads that serve also take replies.
  std::unique_ptr<Poller> poller_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<net::InsecureNetworkWarning> warning_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<GrpcServer> server_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<GrpcConnection>> connections_
      ABSL_GUARDED_BY(mutex_);
  // One shutdown at a time.
  async::Mutex shutdown_mutex_;
};

absl::StatusOr<std::string> GrpcTransport::Impl::Listen(
    absl::string_view address, std::vector<TransportMethod> methods) {
  const bool exposed = !IsLoopback(address);
  if (exposed && !options_.allow_insecure_network) {
    if (absl::Status status = credentials_->CheckMayListen(
            std::string_view(address.data(), address.size()));
        !status.ok()) {
      return status;
    }
  }
  async::MutexLock lock(&mutex_);
  if (shut_down_ || poller_ != nullptr) {
    return absl::FailedPreconditionError(
        "a transport listens once, before it connects");
  }
  const int max_message_bytes = ToIntLimit(options_.max_message_bytes);
  ::grpc::ServerBuilder builder;
  Configure(builder, max_message_bytes);
  UseLoopbackCongestionControl(builder);
  int port = 0;
  builder.AddListeningPort(std::string(address), credentials_->ForServer(),
                           &port);
  std::unique_ptr<::grpc::ServerCompletionQueue> queue =
      builder.AddCompletionQueue();
  auto server = std::make_unique<GrpcServer>(std::move(methods), builder,
                                             queue.get(), gate_, credentials_,
                                             options_.max_message_bytes);
  std::unique_ptr<::grpc::Server> built = builder.BuildAndStart();
  if (built == nullptr || port == 0) {
    if (built != nullptr) built->Shutdown();
    queue->Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue->Next(&tag, &ok)) {
    }
    return absl::UnavailableError(
        absl::StrCat("cannot serve at '", address,
                     "': the address is in use or not of this machine"));
  }
  if (exposed && !credentials_->has_tls()) {
    warning_ =
        std::make_unique<net::InsecureNetworkWarning>(WithPort(address, port));
  }
  server->Start(std::move(built));
  server_ = std::move(server);
  poller_ =
      std::make_unique<Poller>(std::move(queue), options_.num_polling_threads);
  return WithPort(address, port);
}

absl::StatusOr<std::shared_ptr<Connection>> GrpcTransport::Impl::Connect(
    const ConnectionTarget& target) {
  async::MutexLock lock(&mutex_);
  if (shut_down_) {
    return absl::CancelledError("the transport was shut down");
  }
  if (poller_ == nullptr) {
    poller_ =
        std::make_unique<Poller>(std::make_unique<::grpc::CompletionQueue>(),
                                 options_.num_polling_threads);
  }
  auto make_channel = [target, credentials = credentials_,
                       limit = ToIntLimit(options_.max_message_bytes)] {
    ::grpc::ChannelArguments arguments = ChannelArgumentsFor(limit);
    if (IsLoopback(target.address)) UseLoopbackCongestionControl(arguments);
    return ::grpc::CreateCustomChannel(
        target.address, credentials->ForChannel(target.worker), arguments);
  };
  auto connection = std::make_shared<GrpcConnection>(
      std::move(make_channel), poller_->queue(), gate_, credentials_,
      options_.max_message_bytes);
  std::erase_if(connections_, [](const auto& weak) { return weak.expired(); });
  connections_.push_back(connection);
  return std::shared_ptr<Connection>(std::move(connection));
}

// 1. The server cuts its calls off; own calls are cancelled.
// 2. Nothing is begun any more; the queue runs dry, which runs the last
//    callbacks.
// 3. What gRPC holds for calls that handlers still refer to goes.
void GrpcTransport::Impl::Shutdown() {
  async::MutexLock shutdown_lock(&shutdown_mutex_);
  std::vector<std::weak_ptr<GrpcConnection>> connections;
  GrpcServer* server = nullptr;
  Poller* poller = nullptr;
  {
    async::MutexLock lock(&mutex_);
    if (std::exchange(shut_down_, true)) return;
    connections.swap(connections_);
    server = server_.get();
    poller = poller_.get();
  }
  const auto close_connections = [&] {
    for (const auto& weak : connections) {
      if (auto connection = weak.lock()) {
        connection->Close(absl::CancelledError("the transport was shut down"));
      }
    }
  };
  close_connections();
  if (server != nullptr) server->Stop();
  gate_->Close();
  if (poller != nullptr) poller->Shutdown();
  if (server != nullptr) server->Release();
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

void GrpcTransport::Shutdown() { impl_->Shutdown(); }

}  // namespace hawser::rpc

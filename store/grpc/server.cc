#include "store/grpc/server.h"

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/random_source.h"
#include "async/status_macros.h"
#include "net/auth/credentials.h"
#include "net/auth/identity.h"
#include "net/grpc/initialize.h"
#include "net/grpc/server_settings.h"
#include "net/grpc/status.h"
#include "net/health/health.h"
#include "net/health/health_service.h"
#include "net/per_peer_quota.h"
#include "net/server/insecure_network_warning.h"
#include "net/server/listener.h"
#include "net/server/open_file_limit.h"
#include "proto/store.grpc.pb.h"
#include "proto/store.pb.h"
#include "store/dedup_cache.h"
#include "store/endpoint.h"
#include "store/grpc/listen_address.h"
#include "store/grpc/wait_quota.h"
#include "store/hash/key_value_table.h"

namespace hawser::store {
namespace {

using internal::DedupCache;

// Calls that wait take part in it: StoreServerLimits leaves some to others
// (max_waiting_calls_per_client).
constexpr int kMaxCallsPerConnection = 256;

// Room for the keys of a Wait or Check beside the largest value.
constexpr size_t kOtherBytes = size_t{1} << 20;

using internal::KeyValueTable;
using internal::WaitQuota;

// Enough for every client to retry the calls that were in flight when it lost
// its connection.
constexpr size_t kMaxReplies = 1 << 16;
constexpr size_t kMaxReplyBytes = size_t{64} << 20;

absl::Status CheckLifetime(uint64_t lifetime_ms) {
  const auto min = static_cast<uint64_t>(kMinLifetime / absl::Milliseconds(1));
  const auto max = static_cast<uint64_t>(kMaxLifetime / absl::Milliseconds(1));
  if (lifetime_ms >= min && lifetime_ms <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the lifetime of a lease is ",
                                                 lifetime_ms, " ms; ", min,
                                                 " to ", max, " are allowed"));
}

net::PerPeerQuota::Options ReplyQuotaOptions(const StoreServerLimits& limits) {
  return {.peer = "client",
          .items = "unread replies",
          .advice = "read replies sooner, make fewer calls at a time,",
          .bytes_in_total = {.max = limits.max_reply_bytes,
                             .option = "StoreServerLimits::max_reply_bytes"},
          .bytes_per_peer = {
              .max = limits.max_reply_bytes_per_client,
              .option = "StoreServerLimits::max_reply_bytes_per_client"}};
}

// Memory of a call, counted until its reply was sent.
struct CallMemory {
  WaitQuota::Reservation waiting;
  net::PerPeerQuota::Reservation reply;
};

// A call whose memory is counted. Deletes itself.
class CountedReactor : public grpc::ServerUnaryReactor {
 public:
  explicit CountedReactor(std::shared_ptr<CallMemory> memory)
      : memory_(std::move(memory)) {}

  void OnDone() override { delete this; }

 private:
  const std::shared_ptr<CallMemory> memory_;
};

// A call that waits for keys or watches them. `T` is the result of waiting.
template <class T>
class WaitReactor final : public CountedReactor {
 public:
  // `fill(result)` fills the reply.
  template <class Fill>
  WaitReactor(async::Future<T> done, std::shared_ptr<CallMemory> memory,
              Fill fill)
      : CountedReactor(std::move(memory)), done_(std::move(done)) {
    done_.OnReady([this, fill](const async::Result<T>& result) {
      if (result.ok()) fill(result);
      Finish(net::ToGrpcStatus(StatusOf(result)));
    });
  }

  // The client disconnected or its deadline passed.
  void OnCancel() override { done_.Cancel(); }

 private:
  static absl::Status StatusOf(const absl::Status& status) { return status; }
  template <class Value>
  static absl::Status StatusOf(const absl::StatusOr<Value>& result) {
    return result.status();
  }

  const async::Future<T> done_;
};

// Translates between messages and the table.
class Service final : public v1::Store::CallbackService {
 public:
  Service(StoreLimits limits, const StoreServerLimits& server_limits,
          std::shared_ptr<const net::Credentials> credentials)
      : limits_(limits),
        credentials_(std::move(credentials)),
        incarnation_(async::RandomSource::FromEntropy().Next() | 1),
        table_(&clock_, limits, server_limits.max_stored_bytes_per_client),
        dedup_cache_(kMaxReplies, kMaxReplyBytes),
        max_keys_per_call_(server_limits.max_keys_per_call),
        waits_(server_limits),
        replies_(ReplyQuotaOptions(server_limits)) {}

  StoreServerStats stats() const {
    return {.num_keys = table_.NumKeys(),
            .num_waiting = table_.num_waiting(),
            .num_calls = num_calls_.load(std::memory_order_relaxed)};
  }

 private:
  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;

  Reactor* Hello(Context* context, const v1::StoreHelloRequest*,
                 v1::StoreHelloReply* reply) override {
    CountCall();
    absl::Status admitted = credentials_->CheckCall(*context);
    if (!admitted.ok()) return Answer(context, admitted);
    reply->set_server_incarnation(incarnation_);
    reply->set_max_key_bytes(limits_.max_key_bytes);
    reply->set_max_value_bytes(limits_.max_value_bytes);
    return Answer(context, absl::OkStatus());
  }

  Reactor* Set(Context* context, const v1::StoreSetRequest* request,
               v1::StoreSetReply* reply) override {
    return Change(context, *request, reply,
                  [=, this](const std::string& client) {
                    return table_.Set(request->key(), request->value(), client);
                  });
  }

  Reactor* SetLease(Context* context, const v1::StoreSetLeaseRequest* request,
                    v1::StoreSetLeaseReply* reply) override {
    return Change(context, *request, reply,
                  [=, this](const std::string& client) -> absl::Status {
                    RETURN_IF_ERROR(CheckLifetime(request->lifetime_ms()));
                    return table_.SetLease(
                        request->key(), request->value(),
                        absl::Milliseconds(request->lifetime_ms()), client);
                  });
  }

  Reactor* Add(Context* context, const v1::StoreAddRequest* request,
               v1::StoreAddReply* reply) override {
    return Change(context, *request, reply,
                  [=, this](const std::string& client) -> absl::Status {
                    ASSIGN_OR_RETURN(
                        const int64_t sum,
                        table_.Add(request->key(), request->delta(), client));
                    reply->set_value(sum);
                    return absl::OkStatus();
                  });
  }

  Reactor* Append(Context* context, const v1::StoreAppendRequest* request,
                  v1::StoreAppendReply* reply) override {
    return Change(context, *request, reply,
                  [=, this](const std::string& client) -> absl::Status {
                    ASSIGN_OR_RETURN(const int64_t bytes,
                                     table_.Append(request->key(),
                                                   request->suffix(), client));
                    reply->set_value_bytes(bytes);
                    return absl::OkStatus();
                  });
  }

  Reactor* CompareAndSet(Context* context,
                         const v1::StoreCompareAndSetRequest* request,
                         v1::StoreCompareAndSetReply* reply) override {
    return Change(
        context, *request, reply,
        [=, this](const std::string& client) -> absl::Status {
          ASSIGN_OR_RETURN(
              CompareAndSetResult result,
              table_.CompareAndSet(request->key(), request->expected(),
                                   request->desired(), client));
          reply->set_value(std::move(result.value));
          reply->set_swapped(result.swapped);
          return absl::OkStatus();
        },
        // The value is not known before the change.
        limits_.max_value_bytes);
  }

  Reactor* Delete(Context* context, const v1::StoreDeleteRequest* request,
                  v1::StoreDeleteReply* reply) override {
    return Change(context, *request, reply, [=, this](const std::string&) {
      reply->set_deleted(table_.Delete(request->key()));
      return absl::OkStatus();
    });
  }

  Reactor* Get(Context* context, const v1::StoreGetRequest* request,
               v1::StoreGetReply* reply) override {
    const absl::Status status = Admit(context, *request);
    if (!status.ok()) return Answer(context, status);
    const std::string client = credentials_->ClientOf(*context);
    const auto memory = std::make_shared<CallMemory>();
    return AwaitCall(
        context, client, /*num_keys=*/1, request->key().size(), memory,
        table_.WhenValue(request->key(), AdmitReply(client, memory)),
        [reply](const absl::StatusOr<std::string>& value) {
          reply->set_value(*value);
        });
  }

  Reactor* Wait(Context* context, const v1::StoreWaitRequest* request,
                v1::StoreWaitReply*) override {
    absl::Status status = Admit(context, *request);
    status.Update(CheckNumKeys(request->keys_size()));
    if (!status.ok() || request->keys().empty()) return Answer(context, status);
    std::vector<std::string> keys(request->keys().begin(),
                                  request->keys().end());
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    size_t bytes = 0;
    for (const std::string& key : keys) bytes += key.size();
    return AwaitCall(
        context, credentials_->ClientOf(*context), request->keys_size(), bytes,
        std::make_shared<CallMemory>(), table_.WhenPresent(std::move(keys)),
        [](const absl::Status&) {});
  }

  Reactor* AwaitChange(Context* context,
                       const v1::StoreAwaitChangeRequest* request,
                       v1::StoreAwaitChangeReply* reply) override {
    absl::Status status = Admit(context, *request);
    status.Update(CheckNumKeys(request->keys_size()));
    if (status.ok() && request->keys().empty()) {
      status = absl::InvalidArgumentError("a watch needs at least one key");
    }
    if (!status.ok()) return Answer(context, status);
    std::vector<WatchedKey> keys;
    size_t bytes = 0;
    keys.reserve(request->keys().size());
    for (const v1::StoreWatchedKey& watched : request->keys()) {
      WatchedKey& key = keys.emplace_back();
      key.key = watched.key();
      if (watched.has_known()) key.known = watched.known();
      bytes += watched.key().size() + watched.known().size();
    }
    const std::string client = credentials_->ClientOf(*context);
    const auto memory = std::make_shared<CallMemory>();
    return AwaitCall(
        context, client, request->keys_size(), bytes, memory,
        table_.WhenChanged(std::move(keys), AdmitReply(client, memory)),
        [reply](const absl::StatusOr<std::vector<std::string>>& values) {
          for (const std::string& value : *values) reply->add_values(value);
        });
  }

  Reactor* Check(Context* context, const v1::StoreCheckRequest* request,
                 v1::StoreCheckReply* reply) override {
    absl::Status status = Admit(context, *request);
    status.Update(CheckNumKeys(request->keys_size()));
    if (!status.ok()) return Answer(context, status);
    auto memory = std::make_shared<CallMemory>();
    status = AdmitReply(credentials_->ClientOf(*context),
                        memory)(request->ByteSizeLong());
    if (!status.ok()) return Answer(context, status);
    const std::vector<std::string> keys(request->keys().begin(),
                                        request->keys().end());
    absl::StatusOr<std::vector<std::string>> missing = table_.Missing(keys);
    if (!missing.ok()) return Answer(context, missing.status());
    for (std::string& key : *missing) reply->add_missing(std::move(key));
    (void)memory->reply.Resize(reply->ByteSizeLong());
    auto* const reactor = new CountedReactor(std::move(memory));
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  Reactor* NumKeys(Context* context, const v1::StoreNumKeysRequest* request,
                   v1::StoreNumKeysReply* reply) override {
    const absl::Status status = Admit(context, *request);
    if (status.ok()) reply->set_num_keys(table_.NumKeys());
    return Answer(context, status);
  }

  static Reactor* Answer(Context* context, const absl::Status& status) {
    Reactor* reactor = context->DefaultReactor();
    reactor->Finish(net::ToGrpcStatus(status));
    return reactor;
  }

  absl::Status CheckNumKeys(int num_keys) const {
    if (num_keys <= max_keys_per_call_) return absl::OkStatus();
    return absl::ResourceExhaustedError(absl::StrCat(
        "a call with ", num_keys, " keys exceeds the limit of ",
        max_keys_per_call_,
        " (StoreServerLimits::max_keys_per_call): make several calls, or raise "
        "the limit"));
  }

  // Counts the values in a reply to `client` in `memory`.
  KeyValueTable::AdmitBytes AdmitReply(std::string client,
                                       std::shared_ptr<CallMemory> memory) {
    return [this, client = std::move(client),
            memory = std::move(memory)](size_t bytes) -> absl::Status {
      ASSIGN_OR_RETURN(memory->reply, replies_.Admit(client, bytes));
      return absl::OkStatus();
    };
  }

  // Replies with `fill` once `done` completes. If it is complete now, replies
  // even to a client that has reached its limit of waiting calls; the keys and
  // their `bytes` count towards that limit.
  template <class T, class Fill>
  Reactor* AwaitCall(Context* context, const std::string& client, int num_keys,
                     size_t bytes, std::shared_ptr<CallMemory> memory,
                     async::Future<T> done, Fill fill) {
    absl::StatusOr<WaitQuota::Reservation> waiting =
        waits_.Admit(client, num_keys, bytes);
    if (!waiting.ok() && !done.ready()) {
      done.Cancel();
      return Answer(context, waiting.status());
    }
    if (waiting.ok()) memory->waiting = *std::move(waiting);
    return new WaitReactor<T>(std::move(done), std::move(memory), fill);
  }

  void CountCall() { num_calls_.fetch_add(1, std::memory_order_relaxed); }

  // Counts the call and checks that it may run. Once per call.
  template <class Request>
  absl::Status Admit(const Context* context, const Request& request) {
    CountCall();
    RETURN_IF_ERROR(credentials_->CheckCall(*context));
    if (request.server_incarnation() == incarnation_) return absl::OkStatus();
    return absl::FailedPreconditionError(
        "the store server was restarted and its data is lost: restart the job");
  }

  // Applies a change once for its request id; `apply` fills `reply`, with a
  // value of at most `max_reply_bytes`.
  template <class Request, class Reply, class Apply>
  Reactor* Change(Context* context, const Request& request, Reply* reply,
                  Apply apply, size_t max_reply_bytes = 0) {
    absl::Status status = Admit(context, request);
    if (status.ok()) status = credentials_->CheckMayChange(*context);
    if (status.ok() && (request.request_id().client() == 0 ||
                        request.request_id().sequence() == 0)) {
      status = absl::InvalidArgumentError(
          "a change needs a request_id with client and sequence");
    }
    const auto memory = std::make_shared<CallMemory>();
    if (status.ok() && max_reply_bytes > 0) {
      status =
          AdmitReply(credentials_->ClientOf(*context), memory)(max_reply_bytes);
    }
    if (!status.ok()) return Answer(context, status);

    Reactor* const reactor = new CountedReactor(memory);
    const async::Future<std::string> done = dedup_cache_.Once(
        {.client = request.request_id().client(),
         .sequence = request.request_id().sequence()},
        [&]() -> absl::StatusOr<std::string> {
          RETURN_IF_ERROR(apply(credentials_->ClientOf(*context)));
          return reply->SerializeAsString();
        });
    done.OnReady([=](const absl::StatusOr<std::string>& bytes) {
      if (bytes.ok()) reply->ParseFromString(*bytes);
      if (!memory->reply.empty()) {
        (void)memory->reply.Resize(bytes.ok() ? bytes->size() : 0);
      }
      reactor->Finish(net::ToGrpcStatus(bytes.status()));
    });
    return reactor;
  }

  const StoreLimits limits_;
  const std::shared_ptr<const net::Credentials> credentials_;
  const uint64_t incarnation_;
  async::RealClock clock_;
  KeyValueTable table_;
  DedupCache dedup_cache_;
  const int max_keys_per_call_;
  WaitQuota waits_;
  // Values in replies that are not sent yet.
  net::PerPeerQuota replies_;
  std::atomic<int64_t> num_calls_ = 0;
};

}  // namespace

class StoreServer::Impl {
 public:
  explicit Impl(const StoreServerOptions& options)
      : credentials_(options.credentials != nullptr
                         ? options.credentials
                         : net::Credentials::Insecure()),
        service_(options.limits, options.server_limits, credentials_) {}

  const net::Credentials& credentials() const { return *credentials_; }

  // Returns the port.
  absl::StatusOr<int> Listen(const std::string& address,
                             const StoreLimits& limits,
                             const StoreServerLimits& server_limits) {
    net::RaiseOpenFileLimit();
    const size_t max_message_bytes =
        2 * limits.max_value_bytes + limits.max_key_bytes + kOtherBytes;
    ASSIGN_OR_RETURN(
        listener_,
        net::Listener::Open(
            address,
            {.max_calls_per_connection = kMaxCallsPerConnection,
             .max_message_bytes = max_message_bytes,
             .memory_watermark_bytes = server_limits.memory_watermark_bytes,
             .tls = credentials_->has_tls()}));
    grpc::ServerBuilder builder;
    net::ApplyServerSettings(
        {.quota_name = "hawser.store",
         .memory_quota_bytes = server_limits.memory_quota_bytes,
         .max_receive_message_bytes = max_message_bytes,
         .max_calls_per_connection = kMaxCallsPerConnection},
        builder);
    listener_->AttachTo(builder, credentials_->ForServer());
    builder.RegisterService(&service_);
    builder.RegisterService(&health_service_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) {
      return absl::UnavailableError(absl::StrCat(
          "cannot serve at ", address, ": gRPC cannot start the server"));
    }
    listener_->Start();
    health_->SetServing(true);
    return listener_->port();
  }

  void Shutdown() {
    if (listener_ != nullptr) listener_->Stop();
    health_->Close();
    // Without a deadline, Shutdown would wait for waiting calls.
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }

  void WarnOf(const std::string& address) {
    warning_ = std::make_unique<net::InsecureNetworkWarning>(address);
  }

  StoreServerStats stats() const { return service_.stats(); }

 private:
  const std::shared_ptr<const net::Credentials> credentials_;
  std::unique_ptr<net::InsecureNetworkWarning> warning_;
  const std::shared_ptr<net::Health> health_ = std::make_shared<net::Health>(
      std::vector<std::string>{v1::Store::service_full_name()});
  Service service_;
  net::HealthService health_service_{health_};
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<net::Listener> listener_;
};

absl::StatusOr<std::unique_ptr<StoreServer>> StoreServer::Start(
    const StoreServerOptions& options) {
  net::InitializeGrpc();
  auto impl = std::make_unique<Impl>(options);
  const std::string wanted = ToString(Endpoint{options.host, options.port});
  RETURN_IF_ERROR(internal::Validate(options.server_limits));
  ASSIGN_OR_RETURN(const bool loopback,
                   internal::CheckListenAddress(options.host, options.port));
  if (!loopback) {
    RETURN_IF_ERROR(impl->credentials().CheckMayListen(
        wanted, options.allow_insecure_network));
  }
  ASSIGN_OR_RETURN(const int port,
                   impl->Listen(wanted, options.limits, options.server_limits));
  if (!loopback && !impl->credentials().has_tls()) {
    impl->WarnOf(ToString(Endpoint{options.host, port}));
  }
  return std::unique_ptr<StoreServer>(new StoreServer(
      ToString(Endpoint{options.host, port}), port, std::move(impl)));
}

StoreServer::StoreServer(std::string address, int port,
                         std::unique_ptr<Impl> impl)
    : address_(std::move(address)), port_(port), impl_(std::move(impl)) {}

StoreServer::~StoreServer() { Shutdown(); }

void StoreServer::Shutdown() { impl_->Shutdown(); }

StoreServerStats StoreServer::stats() const { return impl_->stats(); }

}  // namespace hawser::store

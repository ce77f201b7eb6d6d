#include "store/grpc/store.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/blocking_region.h"
#include "async/random_source.h"
#include "async/status_macros.h"
#include "net/auth/credentials.h"
#include "net/auth/peer_verification.h"
#include "net/auth/server_diagnosis.h"
#include "net/grpc/client_settings.h"
#include "net/grpc/initialize.h"
#include "net/grpc/shared_queue.h"
#include "net/grpc/status.h"
#include "proto/store.grpc.pb.h"
#include "proto/store.pb.h"
#include "store/grpc/call.h"
#include "store/grpc/watch_calls.h"
#include "store/unacknowledged_limit.h"
#include "telemetry/log.h"

namespace hawser::store {
namespace {

// Time that a timed-out call spends to find out which key is missing.
constexpr absl::Duration kDiagnosisTimeout = absl::Milliseconds(100);

// While no server replies, Connect looks in this interval for a reason that
// will not pass; and says once that it waits.
constexpr absl::Duration kLookInterval = absl::Seconds(2);
// Time that it takes to look.
constexpr absl::Duration kLookTimeout = absl::Seconds(1);

std::string Describe(const std::string& address) {
  return absl::StrCat("gRPC store at ", address);
}

}  // namespace

class GrpcStore::Client {
 public:
  Client(const std::string& address, const std::string& description,
         std::shared_ptr<const net::Credentials> credentials)
      : address_(address),
        credentials_(std::move(credentials)),
        // Any worker of the job may be the server.
        verification_(credentials_, /*worker=*/""),
        channel_(verification_.CreateChannel(
            address, net::ClientSettings(internal::kUnacknowledgedLimitMs))),
        stub_(v1::Store::NewStub(channel_)),
        id_(async::RandomSource::FromEntropy().Next() | 1),
        watches_(description, [this](auto&&... arguments) {
          TryWatch(std::forward<decltype(arguments)>(arguments)...);
        }) {}

  // Makes a call and retries it until it completes; kDeadlineExceeded if it has
  // not by `deadline`. Every method of the service is idempotent.
  template <class Request, class Reply, class StubMethod>
  absl::Status Call(StubMethod method, const Request& request, Reply* reply,
                    async::MonotonicTime deadline) {
    return internal::CallUntilAnswered(
        *channel_, deadline, [&](grpc::ClientContext* context) {
          Prepare(context);
          const grpc::Status status =
              ((*stub_).*method)(context, request, reply);
          return net::ToGrpcStatus(
              verification_.Explain(net::FromGrpcStatus(status)));
        });
  }

  // Waits for the server until `deadline`, or until it is clear why none will
  // reply.
  absl::Status Connect(async::MonotonicTime deadline) {
    v1::StoreHelloReply reply;
    absl::Status status = HelloNow(deadline, &reply);
    bool told = false;
    while (!status.ok()) {
      const bool silent =
          absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
      if (!silent && !absl::IsUnauthenticated(status)) return status;
      RETURN_IF_ERROR(
          net::DiagnoseServer(address_, credentials_->has_tls(),
                              std::min(kLookTimeout, TimeUntil(deadline))));
      if (!silent || TimeUntil(deadline) <= absl::ZeroDuration()) return status;
      const absl::Duration interval =
          std::min(kLookInterval, TimeUntil(deadline));
      status =
          Call(&Stub::Hello, v1::StoreHelloRequest(), &reply,
               async::AddDelay(std::chrono::steady_clock::now(), interval));
      if (absl::IsDeadlineExceeded(status) && interval == kLookInterval &&
          !std::exchange(told, true)) {
        telemetry::Log(
            telemetry::LogSeverity::kInfo,
            absl::StrCat("waits for rank 0, which has to serve the store at ",
                         address_,
                         ": check the address and that its process runs"));
      }
    }
    incarnation_ = reply.server_incarnation();
    limits_.max_key_bytes = reply.max_key_bytes();
    limits_.max_value_bytes = reply.max_value_bytes();
    return absl::OkStatus();
  }

  template <class Request>
  Request MakeRequest() const {
    Request request;
    request.set_server_incarnation(incarnation_);
    return request;
  }

  template <class Request>
  Request MakeChange(const std::string& key) {
    auto request = MakeRequest<Request>();
    request.mutable_request_id()->set_client(id_);
    request.mutable_request_id()->set_sequence(++last_sequence_);
    request.set_key(key);
    return request;
  }

  internal::WatchCalls& watches() { return watches_; }
  const StoreLimits& limits() const { return limits_; }

  using Stub = v1::Store::Stub;

 private:
  static absl::Duration TimeUntil(async::MonotonicTime deadline) {
    return async::TimeBetween(std::chrono::steady_clock::now(), deadline);
  }

  // One attempt, which fails as soon as its connection does.
  absl::Status HelloNow(async::MonotonicTime deadline,
                        v1::StoreHelloReply* reply) {
    grpc::ClientContext context;
    internal::SetDeadline(
        std::min(deadline, async::AddDelay(std::chrono::steady_clock::now(),
                                           kLookInterval)),
        &context);
    credentials_->Sign(context);
    context.set_wait_for_ready(false);
    const async::BlockingRegion region;
    return verification_.Explain(net::FromGrpcStatus(
        stub_->Hello(&context, v1::StoreHelloRequest(), reply)));
  }

  void Prepare(grpc::ClientContext* context) const {
    credentials_->Sign(*context);
    // With TLS, fail at once if the handshake fails.
    context->set_wait_for_ready(!credentials_->has_tls());
  }

  void TryWatch(grpc::ClientContext* context,
                const v1::StoreAwaitChangeRequest* request,
                v1::StoreAwaitChangeReply* reply,
                std::function<void(grpc::Status)> done) {
    Prepare(context);
    auto ended = [this, done = std::move(done)](const grpc::Status& status) {
      done(net::ToGrpcStatus(
          verification_.Explain(net::FromGrpcStatus(status))));
    };
    const bool started = net::SharedQueue::StartUnary(
        context,
        [&](grpc::CompletionQueue* queue) {
          return stub_->PrepareAsyncAwaitChange(context, *request, queue);
        },
        reply, ended);
    // Without a transport, threads of gRPC run it.
    if (!started) {
      stub_->async()->AwaitChange(context, request, reply, std::move(ended));
    }
  }

  const std::string address_;
  const std::shared_ptr<const net::Credentials> credentials_;
  const net::PeerVerification verification_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<Stub> stub_;
  const uint64_t id_;
  // Written by Connect.
  uint64_t incarnation_ = 0;
  StoreLimits limits_;

  std::atomic<uint64_t> last_sequence_{0};
  // Destroyed first, since its attempts use the members above.
  internal::WatchCalls watches_;
};

absl::StatusOr<std::unique_ptr<GrpcStore>> GrpcStore::Connect(
    const GrpcStoreOptions& options) {
  if (options.timeout < absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat(Describe(options.address), ": the timeout ",
                     absl::FormatDuration(options.timeout), " is negative"));
  }
  net::InitializeGrpc();
  auto client = std::make_unique<Client>(
      options.address, Describe(options.address),
      options.credentials != nullptr ? options.credentials
                                     : net::Credentials::Insecure());
  const absl::Status status = client->Connect(
      async::AddDelay(std::chrono::steady_clock::now(), options.timeout));
  if (absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status)) {
    return absl::UnavailableError(
        absl::StrCat("no store server replied at ", options.address, " within ",
                     absl::FormatDuration(options.timeout),
                     ": check the address and that its process runs"));
  }
  if (absl::IsUnimplemented(status)) {
    return absl::UnimplementedError(
        absl::StrCat("the server at ", options.address,
                     " is not a store server: it may be a worker; use the "
                     "address of rank 0's store server"));
  }
  RETURN_IF_ERROR(status);
  return std::unique_ptr<GrpcStore>(new GrpcStore(options, std::move(client)));
}

GrpcStore::GrpcStore(const GrpcStoreOptions& options,
                     std::unique_ptr<Client> client)
    : Store(Describe(options.address), options.timeout, client->limits()),
      client_(std::move(client)) {}

GrpcStore::~GrpcStore() = default;

template <class Request, class Reply, class StubMethod>
absl::Status GrpcStore::Call(StubMethod method, const Request& request,
                             Reply* reply, const std::string& key,
                             const CallTime& time) {
  return Named(client_->Call(method, request, reply, time.deadline), key, time);
}

absl::Status GrpcStore::DoSet(const std::string& key, std::string value,
                              const CallTime& time) {
  auto request = client_->MakeChange<v1::StoreSetRequest>(key);
  request.set_value(std::move(value));
  v1::StoreSetReply reply;
  return Call(&Client::Stub::Set, request, &reply, key, time);
}

absl::Status GrpcStore::DoSetLease(const std::string& key, std::string value,
                                   absl::Duration lifetime,
                                   const CallTime& time) {
  auto request = client_->MakeChange<v1::StoreSetLeaseRequest>(key);
  request.set_value(std::move(value));
  request.set_lifetime_ms(absl::ToInt64Milliseconds(lifetime));
  v1::StoreSetLeaseReply reply;
  return Call(&Client::Stub::SetLease, request, &reply, key, time);
}

async::Future<std::vector<std::string>> GrpcStore::DoWhenChanged(
    std::vector<WatchedKey> keys) {
  auto request = client_->MakeRequest<v1::StoreAwaitChangeRequest>();
  for (WatchedKey& watched : keys) {
    v1::StoreWatchedKey* const added = request.add_keys();
    added->set_key(std::move(watched.key));
    if (watched.known.has_value()) {
      added->set_known(*std::move(watched.known));
    }
  }
  return client_->watches().Start(std::move(request));
}

absl::StatusOr<std::string> GrpcStore::DoGet(const std::string& key,
                                             const CallTime& time) {
  auto request = client_->MakeRequest<v1::StoreGetRequest>();
  request.set_key(key);
  v1::StoreGetReply reply;
  // A timeout of zero still allows time for one read.
  if (time.deadline <= time.start) {
    ASSIGN_OR_RETURN(const bool present, DoCheck({&key, 1}, time));
    if (!present) return TimeoutError(key, time, "");
  }
  RETURN_IF_ERROR(Named(
      client_->Call(&Client::Stub::Get, request, &reply, LookDeadline(time)),
      key, time));
  return std::move(*reply.mutable_value());
}

absl::StatusOr<int64_t> GrpcStore::DoAdd(const std::string& key, int64_t delta,
                                         const CallTime& time) {
  auto request = client_->MakeChange<v1::StoreAddRequest>(key);
  request.set_delta(delta);
  v1::StoreAddReply reply;
  RETURN_IF_ERROR(Call(&Client::Stub::Add, request, &reply, key, time));
  return reply.value();
}

absl::StatusOr<int64_t> GrpcStore::DoAppend(const std::string& key,
                                            std::string suffix,
                                            const CallTime& time) {
  auto request = client_->MakeChange<v1::StoreAppendRequest>(key);
  request.set_suffix(std::move(suffix));
  v1::StoreAppendReply reply;
  RETURN_IF_ERROR(Call(&Client::Stub::Append, request, &reply, key, time));
  return static_cast<int64_t>(reply.value_bytes());
}

absl::StatusOr<CompareAndSetResult> GrpcStore::DoCompareAndSet(
    const std::string& key, std::string expected, std::string desired,
    const CallTime& time) {
  auto request = client_->MakeChange<v1::StoreCompareAndSetRequest>(key);
  request.set_expected(std::move(expected));
  request.set_desired(std::move(desired));
  v1::StoreCompareAndSetReply reply;
  RETURN_IF_ERROR(
      Call(&Client::Stub::CompareAndSet, request, &reply, key, time));
  return CompareAndSetResult{.value = std::move(*reply.mutable_value()),
                             .swapped = reply.swapped()};
}

absl::Status GrpcStore::DoWait(std::span<const std::string> keys,
                               const CallTime& time) {
  absl::Status status = absl::DeadlineExceededError("");
  if (time.deadline > time.start) {
    auto request = client_->MakeRequest<v1::StoreWaitRequest>();
    request.mutable_keys()->Add(keys.begin(), keys.end());
    v1::StoreWaitReply reply;
    status = client_->Call(&Client::Stub::Wait, request, &reply, time.deadline);
    if (!absl::IsDeadlineExceeded(status)) return Named(status, "", time);
  }
  const absl::StatusOr<std::optional<std::string>> missing = FirstMissing(
      keys, std::max(LookDeadline(time),
                     async::AddDelay(std::chrono::steady_clock::now(),
                                     kDiagnosisTimeout)));
  if (!missing.ok()) return Named(missing.status(), keys.front(), time);
  if (!missing->has_value()) return absl::OkStatus();
  return TimeoutError(**missing, time, std::string(status.message()));
}

absl::StatusOr<std::optional<std::string>> GrpcStore::FirstMissing(
    std::span<const std::string> keys, async::MonotonicTime deadline) {
  auto request = client_->MakeRequest<v1::StoreCheckRequest>();
  request.mutable_keys()->Add(keys.begin(), keys.end());
  v1::StoreCheckReply reply;
  RETURN_IF_ERROR(
      client_->Call(&Client::Stub::Check, request, &reply, deadline));
  if (reply.missing().empty()) return std::optional<std::string>();
  return std::optional<std::string>(reply.missing(0));
}

absl::StatusOr<bool> GrpcStore::DoCheck(std::span<const std::string> keys,
                                        const CallTime& time) {
  const auto missing = FirstMissing(keys, LookDeadline(time));
  if (!missing.ok()) return Named(missing.status(), keys.front(), time);
  return !missing->has_value();
}

absl::StatusOr<bool> GrpcStore::DoDelete(const std::string& key,
                                         const CallTime& time) {
  const auto request = client_->MakeChange<v1::StoreDeleteRequest>(key);
  v1::StoreDeleteReply reply;
  RETURN_IF_ERROR(Call(&Client::Stub::Delete, request, &reply, key, time));
  return reply.deleted();
}

absl::StatusOr<int64_t> GrpcStore::DoNumKeys(const CallTime& time) {
  const auto request = client_->MakeRequest<v1::StoreNumKeysRequest>();
  v1::StoreNumKeysReply reply;
  RETURN_IF_ERROR(Call(&Client::Stub::NumKeys, request, &reply, "", time));
  return reply.num_keys();
}

}  // namespace hawser::store

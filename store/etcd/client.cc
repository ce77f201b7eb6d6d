#include "store/etcd/client.h"

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/blocking_region.h"
#include "async/random_source.h"
#include "async/status_macros.h"
#include "net/grpc/client_settings.h"
#include "net/grpc/status.h"
#include "store/grpc/call.h"
#include "store/unacknowledged_limit.h"

namespace hawser::store::internal {
namespace {

using etcdserverpb::RangeRequest;
using etcdserverpb::RangeResponse;
using etcdserverpb::TxnRequest;
using etcdserverpb::TxnResponse;
using etcdserverpb::WatchCreateRequest;

// etcd's default limit on the operations of one transaction.
constexpr size_t kMaxOperations = 128;

constexpr absl::Duration kLeaseTime = absl::Minutes(20);

// Time that the destructor spends on revoking the lease.
constexpr absl::Duration kGoodbye = absl::Milliseconds(500);

// Returns the smallest key greater than all keys with `prefix`; "\0" means "no
// end" to etcd.
std::string EndOfPrefix(std::string prefix) {
  while (!prefix.empty() && prefix.back() == '\xff') prefix.pop_back();
  if (prefix.empty()) return std::string(1, '\0');
  ++prefix.back();
  return prefix;
}

absl::Status Malformed() {
  return absl::InternalError(
      "the server does not serve version 3 of etcd's API: check the address");
}

}  // namespace

EtcdClient::EtcdClient(const std::string& address)
    : channel_(grpc::CreateCustomChannel(
          address, grpc::InsecureChannelCredentials(),
          net::ClientSettings(internal::kUnacknowledgedLimitMs))),
      kv_(etcdserverpb::KV::NewStub(channel_)),
      watch_(etcdserverpb::Watch::NewStub(channel_)),
      lease_(etcdserverpb::Lease::NewStub(channel_)) {}

EtcdClient::~EtcdClient() {
  int64_t lease_id = 0;
  {
    async::MutexLock lock(&mutex_);
    lease_id = lease_id_;
  }
  if (lease_id == 0 ||
      channel_->GetState(/*try_to_connect=*/false) != GRPC_CHANNEL_READY) {
    return;
  }
  async::BlockingRegion region;
  grpc::ClientContext context;
  SetDeadline(async::AddDelay(std::chrono::steady_clock::now(), kGoodbye),
              &context);
  etcdserverpb::LeaseRevokeRequest request;
  request.set_id(lease_id);
  etcdserverpb::LeaseRevokeResponse response;
  // If this fails, the lease expires by itself.
  (void)lease_->LeaseRevoke(&context, request, &response);
}

absl::StatusOr<EtcdClient::Snapshot> EtcdClient::ReadSnapshot(
    std::span<const std::string> keys, bool keys_only,
    async::MonotonicTime deadline) {
  Snapshot snapshot;
  for (size_t begin = 0; begin < keys.size(); begin += kMaxOperations) {
    const auto part =
        keys.subspan(begin, std::min(kMaxOperations, keys.size() - begin));
    TxnRequest request;
    for (const std::string& key : part) {
      RangeRequest* const range =
          request.add_success()->mutable_request_range();
      range->set_key(key);
      range->set_keys_only(keys_only);
      range->set_revision(snapshot.revision);
    }
    ASSIGN_OR_RETURN(TxnResponse response, Transact(request, deadline));
    if (static_cast<size_t>(response.responses_size()) != part.size()) {
      return Malformed();
    }
    if (snapshot.revision == 0) {
      snapshot.revision = response.header().revision();
    }
    for (auto& operation : *response.mutable_responses()) {
      auto* const kvs = operation.mutable_response_range()->mutable_kvs();
      snapshot.values.push_back(
          kvs->empty() ? std::optional<std::string>()
                       : std::move(*kvs->Mutable(0)->mutable_value()));
    }
  }
  return snapshot;
}

absl::StatusOr<int64_t> EtcdClient::Count(const std::string& prefix,
                                          async::MonotonicTime deadline) {
  RangeRequest request;
  request.set_key(prefix);
  request.set_range_end(EndOfPrefix(prefix));
  request.set_count_only(true);
  RangeResponse response;
  RETURN_IF_ERROR(
      CallUntilAnswered(*channel_, deadline, [&](grpc::ClientContext* context) {
        return kv_->Range(context, request, &response);
      }));
  return response.count();
}

absl::StatusOr<TxnResponse> EtcdClient::Transact(
    const TxnRequest& request, async::MonotonicTime deadline) {
  TxnResponse response;
  RETURN_IF_ERROR(
      CallUntilAnswered(*channel_, deadline, [&](grpc::ClientContext* context) {
        return kv_->Txn(context, request, &response);
      }));
  return response;
}

absl::Status EtcdClient::Watch(std::span<const std::string> keys, Await await,
                               int64_t revision, async::MonotonicTime deadline,
                               grpc::ClientContext* context) {
  async::BlockingRegion region;
  SetDeadline(deadline, context);
  const auto stream = watch_->Watch(context);
  std::set<std::string, std::less<>> awaited(keys.begin(), keys.end());
  for (const std::string& key : awaited) {
    etcdserverpb::WatchRequest request;
    WatchCreateRequest* const create = request.mutable_create_request();
    create->set_key(key);
    create->set_start_revision(revision);
    if (await == Await::kAllSet) {
      create->add_filters(WatchCreateRequest::NODELETE);
    }
    if (!stream->Write(request)) break;
  }
  etcdserverpb::WatchResponse response;
  while (!awaited.empty() && stream->Read(&response)) {
    // Compacted: the caller sees missed changes when it reads again.
    if (response.canceled() && response.compact_revision() != 0) break;
    if (response.canceled()) {
      context->TryCancel();
      (void)stream->Finish();
      return absl::PermissionDeniedError(
          absl::StrCat("etcd ended a watch: ", response.cancel_reason()));
    }
    for (const etcdserverpb::Event& event : response.events()) {
      awaited.erase(event.kv().key());
      if (await == Await::kAnyChange) awaited.clear();
    }
  }
  context->TryCancel();
  const grpc::Status status = stream->Finish();
  if (awaited.empty()) return absl::OkStatus();
  if (std::chrono::steady_clock::now() >= deadline) return OutOfTime(*channel_);
  switch (status.error_code()) {
    case grpc::StatusCode::OK:
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return absl::OkStatus();
    default:
      return net::FromGrpcStatus(status);
  }
}

absl::StatusOr<int64_t> EtcdClient::Lease(async::MonotonicTime deadline) {
  {
    async::MutexLock lock(&mutex_);
    if (lease_id_ != 0 &&
        async::TimeBetween(lease_granted_, std::chrono::steady_clock::now()) <
            kLeaseTime / 2) {
      return lease_id_;
    }
  }
  const async::MonotonicTime now = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(const int64_t id,
                   GrantLease(absl::ToInt64Seconds(kLeaseTime), deadline));
  async::MutexLock lock(&mutex_);
  lease_id_ = id;
  lease_granted_ = now;
  return lease_id_;
}

absl::StatusOr<int64_t> EtcdClient::GrantLease(int64_t seconds,
                                               async::MonotonicTime deadline) {
  etcdserverpb::LeaseGrantRequest request;
  request.set_ttl(seconds);
  request.set_id(static_cast<int64_t>(
      (async::RandomSource::FromEntropy().Next() >> 1) | 1));
  etcdserverpb::LeaseGrantResponse response;
  const absl::Status status =
      CallUntilAnswered(*channel_, deadline, [&](grpc::ClientContext* context) {
        return lease_->LeaseGrant(context, request, &response);
      });
  // It exists already, created by an earlier attempt of this request.
  if (!absl::IsFailedPrecondition(status)) RETURN_IF_ERROR(status);
  return request.id();
}

absl::StatusOr<bool> EtcdClient::RenewLease(int64_t id,
                                            async::MonotonicTime deadline) {
  etcdserverpb::LeaseKeepAliveRequest request;
  request.set_id(id);
  etcdserverpb::LeaseKeepAliveResponse response;
  RETURN_IF_ERROR(
      CallUntilAnswered(*channel_, deadline, [&](grpc::ClientContext* context) {
        const auto stream = lease_->LeaseKeepAlive(context);
        const bool answered = stream->Write(request) && stream->Read(&response);
        if (!answered) return stream->Finish();
        context->TryCancel();
        (void)stream->Finish();
        return grpc::Status::OK;
      }));
  return response.ttl() > 0;
}

}  // namespace hawser::store::internal

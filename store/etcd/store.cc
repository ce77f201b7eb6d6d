#include "store/etcd/store.h"

#include <grpcpp/client_context.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "async/blocking_region.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "net/grpc/initialize.h"
#include "proto/etcd.pb.h"
#include "store/backoff.h"
#include "store/change_slots.h"
#include "store/etcd/client.h"
#include "store/hash/value_operations.h"

namespace hawser::store {
namespace {

using etcdserverpb::Compare;
using etcdserverpb::KeyValue;
using etcdserverpb::PutRequest;
using etcdserverpb::TxnRequest;
using etcdserverpb::TxnResponse;

// Time limit of one attempt of a watch to reach etcd. The destructor of the
// store may have to wait for it.
constexpr absl::Duration kWatchAttempt = absl::Seconds(2);
// Pause of a watch that cannot reach etcd.
constexpr absl::Duration kWatchPause = absl::Milliseconds(500);

async::MonotonicTime After(absl::Duration delay) {
  return async::AddDelay(std::chrono::steady_clock::now(), delay);
}

void AddRead(const std::string& key,
             google::protobuf::RepeatedPtrField<etcdserverpb::RequestOp>* to) {
  to->Add()->mutable_request_range()->set_key(key);
}

// The key read by operation `index` of a transaction; null if absent.
const KeyValue* Read(const TxnResponse& response, int index) {
  if (index >= response.responses_size()) return nullptr;
  const auto& kvs = response.responses(index).response_range().kvs();
  return kvs.empty() ? nullptr : &kvs[0];
}

// True if the change of `marker`, or a later one of its slot, was applied. In
// the latter case the attempt is outdated and its reply is not used.
Compare IsMade(const PutRequest& marker) {
  Compare made;
  made.set_target(Compare::VALUE);
  made.set_result(Compare::GREATER);
  made.set_key(marker.key());
  // Compares less than the same sequence followed by a reply.
  made.set_value(marker.value().substr(0, marker.value().find(' ')));
  return made;
}

// Returns the reply in a marker's value.
absl::StatusOr<int64_t> ReplyIn(const KeyValue* marker) {
  int64_t reply = 0;
  if (marker == nullptr ||
      !absl::SimpleAtoi(marker->value().substr(marker->value().find(' ') + 1),
                        &reply)) {
    return absl::InternalError("etcd holds a malformed record of a change");
  }
  return reply;
}

}  // namespace

class EtcdStore::Client {
 public:
  Client(const std::string& address, const std::string& prefix)
      : etcd_(address),
        data_(absl::StrCat(prefix, "/data/")),
        changes_(absl::StrCat(prefix, "/changes/")) {}

  internal::EtcdClient& etcd() { return etcd_; }
  internal::ChangeSlots& slots() { return slots_; }
  const std::string& data() const { return data_; }

  std::string Full(const std::string& key) const { return data_ + key; }
  std::vector<std::string> Full(std::span<const std::string> keys) const {
    std::vector<std::string> full;
    full.reserve(keys.size());
    for (const std::string& key : keys) full.push_back(Full(key));
    return full;
  }

  // The lease of etcd under which this client keeps `key` for `seconds`; 0 for
  // none. It may have ended.
  int64_t KeyLease(const std::string& key, int64_t seconds) {
    async::MutexLock lock(&mutex_);
    const auto it = key_leases_.find(key);
    return it != key_leases_.end() && it->second.seconds == seconds
               ? it->second.id
               : 0;
  }
  void NoteKeyLease(const std::string& key, int64_t seconds, int64_t id) {
    async::MutexLock lock(&mutex_);
    const async::MonotonicTime now = std::chrono::steady_clock::now();
    const auto it = key_leases_.find(key);
    if (it == key_leases_.end()) {
      absl::erase_if(key_leases_, [now](const auto& entry) {
        return entry.second.forget_at < now;
      });
    }
    key_leases_[key] = {
        .id = id,
        .seconds = seconds,
        .forget_at = async::AddDelay(now, 2 * absl::Seconds(seconds))};
  }

  // The record of `change` written by its transaction: key, "<sequence>
  // <reply>", lease. Sequences have a fixed width, for IsMade.
  PutRequest Marker(int64_t lease, const internal::ChangeSlots::Change& change,
                    int64_t reply) const {
    PutRequest marker;
    marker.set_key(
        absl::StrCat(changes_, absl::Hex(lease), "/", change.slot()));
    marker.set_value(absl::StrCat(
        absl::Dec(change.sequence(), absl::kZeroPad20), " ", reply));
    marker.set_lease(lease);
    return marker;
  }

 private:
  struct KeyLeaseEntry {
    int64_t id = 0;
    int64_t seconds = 0;
    // By then it has ended if it is not renewed.
    async::MonotonicTime forget_at;
  };

  internal::EtcdClient etcd_;
  internal::ChangeSlots slots_;
  const std::string data_;
  const std::string changes_;

  async::Mutex mutex_;
  absl::flat_hash_map<std::string, KeyLeaseEntry> key_leases_
      ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<std::unique_ptr<EtcdStore>> EtcdStore::Connect(
    EtcdStoreOptions options) {
  const std::string name = absl::StrCat("etcd store at ", options.address);
  if (options.timeout < absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": the timeout ",
                     absl::FormatDuration(options.timeout), " is negative"));
  }
  options.prefix = std::string(absl::StripSuffix(options.prefix, "/"));
  if (options.prefix.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": the prefix is empty; set it to a name of the job"));
  }
  net::InitializeGrpc();
  auto client = std::make_unique<Client>(options.address, options.prefix);
  const absl::Status status =
      client->etcd()
          .Count(client->data(),
                 async::AddDelay(std::chrono::steady_clock::now(),
                                 options.timeout))
          .status();
  if (absl::IsDeadlineExceeded(status)) {
    return absl::UnavailableError(
        absl::StrCat("no etcd server replied at ", options.address, " within ",
                     absl::FormatDuration(options.timeout),
                     ": check the address, that etcd runs, and that its "
                     "cluster has a leader"));
  }
  if (absl::IsUnimplemented(status)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the server at ", options.address,
        " does not serve version 3 of etcd's API: ", status.message()));
  }
  if (!status.ok()) {
    return absl::Status(status.code(),
                        absl::StrCat(name, ": ", status.message()));
  }
  return std::unique_ptr<EtcdStore>(new EtcdStore(options, std::move(client)));
}

EtcdStore::EtcdStore(const EtcdStoreOptions& options,
                     std::unique_ptr<Client> client)
    : Store(
          absl::StrCat("etcd store at ", options.address, "/", options.prefix),
          options.timeout, options.limits),
      client_(std::move(client)) {}

EtcdStore::~EtcdStore() { watches_.Stop(); }

// --- Waiting.

absl::StatusOr<std::vector<std::string>> EtcdStore::WhenPresent(
    std::span<const std::string> keys, bool keys_only, const CallTime& time) {
  async::BlockingRegion region;
  const std::vector<std::string> full = client_->Full(keys);
  internal::Backoff backoff;
  while (true) {
    auto snapshot =
        client_->etcd().ReadSnapshot(full, keys_only, LookDeadline(time));
    if (!snapshot.ok()) return Named(snapshot.status(), keys.front(), time);
    std::vector<std::string> values;
    std::vector<std::string> missing;
    size_t first_missing = 0;
    for (size_t i = 0; i < full.size(); ++i) {
      std::optional<std::string>& value = snapshot->values[i];
      if (value.has_value()) {
        values.push_back(*std::move(value));
      } else {
        if (missing.empty()) first_missing = i;
        missing.push_back(full[i]);
      }
    }
    if (missing.empty()) return values;
    const std::string& first = keys[first_missing];
    if (std::chrono::steady_clock::now() >= time.deadline) {
      return TimeoutError(first, time, "");
    }
    grpc::ClientContext context;
    const absl::Status status =
        client_->etcd().Watch(missing, internal::EtcdClient::Await::kAllSet,
                              snapshot->revision + 1, time.deadline, &context);
    if (absl::IsUnavailable(status)) {
      backoff.Pause(time.deadline);
    } else if (!status.ok()) {
      return Named(status, first, time);
    }
  }
}

absl::StatusOr<std::string> EtcdStore::DoGet(const std::string& key,
                                             const CallTime& time) {
  ASSIGN_OR_RETURN(std::vector<std::string> values,
                   WhenPresent({&key, 1}, /*keys_only=*/false, time));
  return std::move(values.front());
}

absl::Status EtcdStore::DoWait(std::span<const std::string> keys,
                               const CallTime& time) {
  return WhenPresent(keys, /*keys_only=*/true, time).status();
}

async::Future<std::vector<std::string>> EtcdStore::DoWhenChanged(
    std::vector<WatchedKey> keys) {
  return watches_.Start(
      [this, keys = std::move(keys)](internal::WatchThreads::Watch& watch) {
        return Watch(keys, watch);
      });
}

// 1. Reads the keys.
// 2. Watches them from the next revision on, until one is set or removed; goes
//    back to 1.
absl::StatusOr<std::vector<std::string>> EtcdStore::Watch(
    std::span<const WatchedKey> keys, internal::WatchThreads::Watch& watch) {
  std::vector<std::string> names;
  names.reserve(keys.size());
  for (const WatchedKey& watched : keys) names.push_back(watched.key);
  const std::vector<std::string> full = client_->Full(names);
  while (!watch.cancelled()) {
    const auto snapshot = client_->etcd().ReadSnapshot(
        full, /*keys_only=*/false, After(kWatchAttempt));
    absl::Status status = snapshot.status();
    if (status.ok()) {
      absl::flat_hash_map<std::string_view, const std::string*> values;
      for (size_t i = 0; i < keys.size(); ++i) {
        const std::optional<std::string>& value = snapshot->values[i];
        values[names[i]] = value.has_value() ? &*value : nullptr;
      }
      ASSIGN_OR_RETURN(
          std::optional<std::vector<std::string>> changed,
          internal::ChangedValues(keys, [&](const std::string& key) {
            return values.find(key)->second;
          }));
      if (changed.has_value()) return *std::move(changed);
      grpc::ClientContext context;
      const internal::WatchThreads::Interruptible watching(
          &watch, [&] { context.TryCancel(); });
      status = client_->etcd().Watch(
          full, internal::EtcdClient::Await::kAnyChange, snapshot->revision + 1,
          async::kNever, &context);
    }
    if (status.ok()) continue;
    if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) {
      return absl::Status(status.code(),
                          absl::StrCat(description(), ": ", status.message()));
    }
    watch.PauseUntil(After(kWatchPause));
  }
  return absl::CancelledError("");
}

absl::StatusOr<bool> EtcdStore::DoCheck(std::span<const std::string> keys,
                                        const CallTime& time) {
  const auto snapshot =
      client_->etcd().ReadSnapshot(client_->Full(keys),
                                   /*keys_only=*/true, LookDeadline(time));
  if (!snapshot.ok()) return Named(snapshot.status(), keys.front(), time);
  return std::all_of(snapshot->values.begin(), snapshot->values.end(),
                     [](const auto& value) { return value.has_value(); });
}

absl::StatusOr<int64_t> EtcdStore::DoNumKeys(const CallTime& time) {
  const auto count = client_->etcd().Count(client_->data(), time.deadline);
  if (!count.ok()) return Named(count.status(), "", time);
  return *count;
}

// --- Changes.

absl::Status EtcdStore::DoSet(const std::string& key, std::string value,
                              const CallTime& time) {
  auto lease = client_->etcd().Lease(time.deadline);
  if (!lease.ok()) return Named(lease.status(), key, time);
  const internal::ChangeSlots::Change change(&client_->slots());
  const PutRequest marker = client_->Marker(*lease, change, 0);
  // Apply the change unless it or a later one was applied.
  TxnRequest request;
  *request.add_compare() = IsMade(marker);
  PutRequest* const put = request.add_failure()->mutable_request_put();
  put->set_key(client_->Full(key));
  put->set_value(std::move(value));
  *request.add_failure()->mutable_request_put() = marker;
  return Named(client_->etcd().Transact(request, time.deadline).status(), key,
               time);
}

absl::Status EtcdStore::DoSetLease(const std::string& key, std::string value,
                                   absl::Duration lifetime,
                                   const CallTime& time) {
  const int64_t seconds =
      absl::ToInt64Seconds(absl::Ceil(lifetime, absl::Seconds(1)));
  return Named(SetUnderLease(key, value, seconds, time.deadline), key, time);
}

// 1. Renews the lease under which this client keeps the key, or begins one.
// 2. Unless the key has this value and this lease already: sets it, once as
//    DoSet does. A renewal thus leaves no old value behind in etcd. If the
//    lease has ended since step 1, goes back to it.
absl::Status EtcdStore::SetUnderLease(const std::string& key,
                                      const std::string& value, int64_t seconds,
                                      async::MonotonicTime deadline) {
  internal::EtcdClient& etcd = client_->etcd();
  ASSIGN_OR_RETURN(const int64_t own_lease, etcd.Lease(deadline));
  const internal::ChangeSlots::Change change(&client_->slots());
  const PutRequest marker = client_->Marker(own_lease, change, 0);
  const std::string full = client_->Full(key);
  int64_t id = client_->KeyLease(key, seconds);
  while (true) {
    bool renewed = false;
    if (id != 0) {
      ASSIGN_OR_RETURN(renewed, etcd.RenewLease(id, deadline));
    }
    if (!renewed) {
      ASSIGN_OR_RETURN(id, etcd.GrantLease(seconds, deadline));
    }
    client_->NoteKeyLease(key, seconds, id);

    TxnRequest once;
    *once.add_compare() = IsMade(marker);
    PutRequest* const put = once.add_failure()->mutable_request_put();
    put->set_key(full);
    put->set_value(value);
    put->set_lease(id);
    *once.add_failure()->mutable_request_put() = marker;

    TxnRequest request;
    Compare* const same_value = request.add_compare();
    same_value->set_target(Compare::VALUE);
    same_value->set_key(full);
    same_value->set_value(value);
    Compare* const same_lease = request.add_compare();
    same_lease->set_target(Compare::LEASE);
    same_lease->set_key(full);
    same_lease->set_lease(id);
    *request.add_failure()->mutable_request_txn() = std::move(once);
    const absl::Status status = etcd.Transact(request, deadline).status();
    if (!absl::IsNotFound(status)) return status;
    id = 0;
  }
}

absl::StatusOr<int64_t> EtcdStore::Change(const std::string& key,
                                          const CallTime& time, Decide decide) {
  absl::StatusOr<int64_t> reply = TryChange(key, time.deadline, decide);
  if (!reply.ok()) return Named(reply.status(), key, time);
  return reply;
}

// 1. Assumes that the key is absent, as it is for most changes. The first write
//    of a key then takes one request, and any other no more than with a read
//    first.
// 2. Decides the new value. If that is no change and the value is only assumed,
//    reads the key first.
// 3. Unless the marker shows that an earlier attempt, whose reply was lost, was
//    applied: writes the value and the marker of this change if the key is
//    unchanged since step 2; otherwise reads the key and goes back to 2.
absl::StatusOr<int64_t> EtcdStore::TryChange(const std::string& key,
                                             async::MonotonicTime deadline,
                                             Decide decide) {
  internal::EtcdClient& etcd = client_->etcd();
  ASSIGN_OR_RETURN(const int64_t lease, etcd.Lease(deadline));
  const internal::ChangeSlots::Change change(&client_->slots());
  const std::string full = client_->Full(key);
  bool guessed = true;
  TxnResponse found;
  while (true) {
    const KeyValue* const now = Read(found, 0);
    absl::StatusOr<Update> decision =
        decide(now == nullptr ? nullptr : &now->value());
    if (guessed && (!decision.ok() || decision->kind == Update::Kind::kKeep)) {
      TxnRequest read;
      AddRead(full, read.mutable_success());
      ASSIGN_OR_RETURN(found, etcd.Transact(read, deadline));
      guessed = false;
      continue;
    }
    ASSIGN_OR_RETURN(Update update, std::move(decision));
    if (update.kind == Update::Kind::kKeep) return update.reply;

    const PutRequest marker = client_->Marker(lease, change, update.reply);
    TxnRequest request;
    Compare* const unchanged = request.add_compare();
    unchanged->set_target(Compare::MOD);
    unchanged->set_key(full);
    unchanged->set_mod_revision(now == nullptr ? 0 : now->mod_revision());
    if (update.kind == Update::Kind::kRemove) {
      request.add_success()->mutable_request_delete_range()->set_key(full);
    } else {
      PutRequest* const put = request.add_success()->mutable_request_put();
      put->set_key(full);
      put->set_value(std::move(update.value));
    }
    *request.add_success()->mutable_request_put() = marker;
    AddRead(full, request.mutable_failure());

    TxnRequest once;
    *once.add_compare() = IsMade(marker);
    AddRead(marker.key(), once.mutable_success());
    *once.add_failure()->mutable_request_txn() = std::move(request);
    ASSIGN_OR_RETURN(TxnResponse answer, etcd.Transact(once, deadline));
    if (answer.succeeded()) return ReplyIn(Read(answer, 0));
    if (answer.responses().empty()) {
      return absl::InternalError(
          "etcd's reply lacks a part of the transaction");
    }
    found = std::move(*answer.mutable_responses(0)->mutable_response_txn());
    if (found.succeeded()) return update.reply;
    guessed = false;
  }
}

absl::StatusOr<int64_t> EtcdStore::DoAdd(const std::string& key, int64_t delta,
                                         const CallTime& time) {
  return Change(key, time,
                [&](const std::string* value) -> absl::StatusOr<Update> {
                  ASSIGN_OR_RETURN(const int64_t sum,
                                   internal::AddToNumber(key, value, delta));
                  return Update{.kind = Update::Kind::kPut,
                                .value = absl::StrCat(sum),
                                .reply = sum};
                });
}

absl::StatusOr<int64_t> EtcdStore::DoAppend(const std::string& key,
                                            std::string suffix,
                                            const CallTime& time) {
  return Change(
      key, time, [&](const std::string* value) -> absl::StatusOr<Update> {
        ASSIGN_OR_RETURN(
            std::string longer,
            internal::Appended(key, value, suffix, limits().max_value_bytes));
        const auto bytes = static_cast<int64_t>(longer.size());
        return Update{.kind = Update::Kind::kPut,
                      .value = std::move(longer),
                      .reply = bytes};
      });
}

absl::StatusOr<CompareAndSetResult> EtcdStore::DoCompareAndSet(
    const std::string& key, std::string expected, std::string desired,
    const CallTime& time) {
  std::string other;
  ASSIGN_OR_RETURN(
      const int64_t swapped,
      Change(key, time,
             [&](const std::string* value) -> absl::StatusOr<Update> {
               if (!internal::IsExpected(value, expected)) {
                 other = value == nullptr ? "" : *value;
                 return Update{};
               }
               return Update{
                   .kind = Update::Kind::kPut, .value = desired, .reply = 1};
             }));
  if (swapped == 0) {
    return CompareAndSetResult{.value = std::move(other), .swapped = false};
  }
  return CompareAndSetResult{.value = std::move(desired), .swapped = true};
}

absl::StatusOr<bool> EtcdStore::DoDelete(const std::string& key,
                                         const CallTime& time) {
  ASSIGN_OR_RETURN(
      const int64_t removed,
      Change(key, time,
             [&](const std::string* value) -> absl::StatusOr<Update> {
               if (value == nullptr) return Update{};
               return Update{.kind = Update::Kind::kRemove, .reply = 1};
             }));
  return removed == 1;
}

}  // namespace hawser::store

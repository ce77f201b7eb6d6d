#include "store/hash/key_value_table.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <variant>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/strings/str_cat.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "store/hash/lease_schedule.h"
#include "store/hash/value_operations.h"

namespace hawser::store::internal {
namespace {

// A call that waits for keys, or for the value of one key; listed under the
// first key that was found absent.
struct Waiter {
  std::vector<std::string> keys;
  std::variant<async::Promise<void>, async::Promise<std::string>> promise;
  // For a value.
  KeyValueTable::AdmitBytes admit;
};
using WaiterList = std::vector<std::shared_ptr<Waiter>>;

// A watch; listed under each of its keys.
struct Watcher {
  std::vector<WatchedKey> keys;
  async::Promise<std::vector<std::string>> promise;
  KeyValueTable::AdmitBytes admit;
};
using WatcherList = std::vector<std::shared_ptr<Watcher>>;

// Sets the results of calls that have ended. Called after the lock is released.
using Answers = std::vector<absl::AnyInvocable<void()>>;

void Send(Answers& answers) {
  for (absl::AnyInvocable<void()>& answer : answers) answer();
}

absl::Status Admitted(const KeyValueTable::AdmitBytes& admit, size_t bytes) {
  return admit == nullptr ? absl::OkStatus() : admit(bytes);
}

// The result of a watch that has ended.
absl::StatusOr<std::vector<std::string>> ResultOf(
    absl::StatusOr<std::optional<std::vector<std::string>>> changed) {
  RETURN_IF_ERROR(changed.status());
  return **std::move(changed);
}

}  // namespace

class KeyValueTable::State : public std::enable_shared_from_this<State> {
 public:
  State(async::Clock* clock, StoreLimits limits, size_t max_client_bytes)
      : clock_(*clock), limits_(limits), max_client_bytes_(max_client_bytes) {}

  // Sets `key` to the result of `update(current value)` on behalf of `client`;
  // nullopt leaves it unchanged. With `lifetime` the value is a lease.
  template <class Update>
  absl::Status Change(const std::string& key, const std::string& client,
                      Update update,
                      std::optional<absl::Duration> lifetime = {}) {
    RETURN_IF_ERROR(CheckKeys({&key, 1}));
    Answers answers;
    {
      async::MutexLock lock(&mutex_);
      const auto it = values_.find(key);
      const Entry* entry = it == values_.end() ? nullptr : &it->second;
      ASSIGN_OR_RETURN(std::optional<std::string> next,
                       update(entry == nullptr ? nullptr : &entry->value));
      if (!next.has_value()) return absl::OkStatus();
      const bool is_new = entry == nullptr;
      // Most renewals of leases change nothing.
      const bool changed = is_new || entry->value != *next;
      RETURN_IF_ERROR(StoreLocked(key, entry, *std::move(next), client));
      if (lifetime.has_value()) {
        leases_.Renew(key, *lifetime);
        ScheduleTickLocked();
      } else {
        leases_.End(key);
      }
      if (is_new) AnswerWaitersLocked(key, answers);
      if (changed) AnswerWatchersLocked(key, answers);
    }
    Send(answers);
    return absl::OkStatus();
  }

  std::optional<std::string> Get(const std::string& key) const {
    async::MutexLock lock(&mutex_);
    const auto it = values_.find(key);
    if (it == values_.end()) return std::nullopt;
    return it->second.value;
  }

  bool Delete(const std::string& key) {
    Answers answers;
    {
      async::MutexLock lock(&mutex_);
      if (!values_.contains(key)) return false;
      leases_.End(key);
      EraseLocked(key, answers);
    }
    Send(answers);
    return true;
  }

  int64_t NumKeys() const {
    async::MutexLock lock(&mutex_);
    return static_cast<int64_t>(values_.size());
  }

  absl::StatusOr<std::vector<std::string>> Missing(
      std::span<const std::string> keys) const {
    RETURN_IF_ERROR(CheckKeys(keys));
    std::vector<std::string> missing;
    async::MutexLock lock(&mutex_);
    for (const std::string& key : keys) {
      if (!values_.contains(key)) missing.push_back(key);
    }
    return missing;
  }

  // Completes with nothing if T is void, and otherwise with the value of the
  // only key.
  template <class T>
  async::Future<T> WhenPresent(std::vector<std::string> keys,
                               AdmitBytes admit) {
    if (absl::Status valid = CheckKeys(keys); !valid.ok()) {
      return async::MakeReadyFuture<T>(std::move(valid));
    }
    auto waiter = std::make_shared<Waiter>();
    waiter->keys = std::move(keys);
    waiter->admit = std::move(admit);
    auto& promise = waiter->promise.emplace<async::Promise<T>>();
    auto future = promise.future();
    promise.OnCancel(
        [state = weak_from_this(), weak = std::weak_ptr<Waiter>(waiter)] {
          const auto table = state.lock();
          const auto cancelled = weak.lock();
          if (table != nullptr && cancelled != nullptr)
            table->Remove(cancelled);
        });
    Answers answers;
    {
      async::MutexLock lock(&mutex_);
      AnswerOrListLocked(std::move(waiter), answers);
    }
    Send(answers);
    return future;
  }

  async::Future<std::vector<std::string>> WhenChanged(
      std::vector<WatchedKey> keys, AdmitBytes admit) {
    for (const WatchedKey& watched : keys) {
      if (absl::Status valid = CheckKeys({&watched.key, 1}); !valid.ok()) {
        return async::MakeReadyFuture<std::vector<std::string>>(
            std::move(valid));
      }
    }
    auto watcher = std::make_shared<Watcher>();
    watcher->keys = std::move(keys);
    watcher->admit = std::move(admit);
    auto future = watcher->promise.future();
    watcher->promise.OnCancel(
        [state = weak_from_this(), weak = std::weak_ptr<Watcher>(watcher)] {
          const auto table = state.lock();
          const auto cancelled = weak.lock();
          if (table != nullptr && cancelled != nullptr) {
            async::MutexLock lock(&table->mutex_);
            table->RemoveLocked(cancelled);
          }
        });
    absl::StatusOr<std::optional<std::vector<std::string>>> values;
    {
      async::MutexLock lock(&mutex_);
      values = ChangedLocked(*watcher);
      if (values.ok() && !values->has_value()) {
        ++num_watchers_;
        for (const WatchedKey& watched : watcher->keys) {
          watchers_[watched.key].push_back(watcher);
        }
        return future;
      }
    }
    watcher->promise.Set(ResultOf(std::move(values)));
    return future;
  }

  int64_t num_waiting() const {
    async::MutexLock lock(&mutex_);
    int64_t count = num_watchers_;
    for (const auto& [key, list] : waiters_) {
      count += static_cast<int64_t>(list.size());
    }
    return count;
  }

  const StoreLimits& limits() const { return limits_; }

 private:
  // Bytes stored per client, for clients with at least one key.
  using Clients = std::unordered_map<std::string, size_t>;

  struct Entry {
    std::string value;
    // The client that wrote the value; null for none. Stable under insertion
    // and removal of others.
    Clients::value_type* client = nullptr;
  };

  static size_t BytesOf(const std::string& key, const std::string& value) {
    return kKeyOverheadBytes + key.size() + value.size();
  }

  absl::Status CheckKeys(std::span<const std::string> keys) const {
    for (const std::string& key : keys) {
      if (key.empty() || key.size() > limits_.max_key_bytes) {
        return absl::InvalidArgumentError(
            absl::StrCat("a key has ", key.size(), " bytes; 1 to ",
                         limits_.max_key_bytes, " are allowed"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status StoreLocked(const std::string& key, const Entry* current,
                           std::string next, const std::string& client)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (next.size() > limits_.max_value_bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("a value has ", next.size(), " bytes, the limit is ",
                       limits_.max_value_bytes));
    }
    const size_t before = current == nullptr ? 0 : BytesOf(key, current->value);
    const size_t after = BytesOf(key, next);
    const size_t total = total_bytes_ - before + after;
    if (after > before && total > limits_.max_total_bytes) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "the store is full: it holds ", values_.size(), " keys, which use ",
          total_bytes_, " bytes of ", limits_.max_total_bytes));
    }
    RETURN_IF_ERROR(CheckClientLocked(current, before, after, client));
    total_bytes_ = total;
    Entry& entry = values_[key];
    ForgetLocked(entry.client, before);
    entry.client = nullptr;
    if (!client.empty()) {
      entry.client = &*clients_.try_emplace(client, 0).first;
      entry.client->second += after;
    }
    entry.value = std::move(next);
    return absl::OkStatus();
  }

  // Checks whether `client` may change `current`, an entry of `before` bytes,
  // to one of `after` bytes.
  absl::Status CheckClientLocked(const Entry* current, size_t before,
                                 size_t after, const std::string& client) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto it = clients_.find(client);
    const size_t held = it == clients_.end() ? 0 : it->second;
    const bool own =
        current != nullptr && it != clients_.end() && current->client == &*it;
    const size_t freed = own ? before : 0;
    if (client.empty() || after <= freed ||
        after - freed <= max_client_bytes_ - held) {
      return absl::OkStatus();
    }
    return absl::ResourceExhaustedError(absl::StrCat(
        "the keys written by ", client, " use ", held, " bytes of the ",
        max_client_bytes_,
        " allowed per client (StoreServerLimits::max_stored_bytes_per_client): "
        "delete some keys or raise the limit"));
  }

  void ForgetLocked(Clients::value_type* client, size_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (client == nullptr) return;
    client->second -= bytes;
    if (client->second == 0) clients_.erase(clients_.find(client->first));
  }

  const std::string* FirstMissingLocked(const Waiter& waiter) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    for (const std::string& key : waiter.keys) {
      if (!values_.contains(key)) return &key;
    }
    return nullptr;
  }

  absl::StatusOr<std::string> AdmittedValueLocked(const Waiter& waiter) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::string& value = values_.find(waiter.keys.front())->second.value;
    RETURN_IF_ERROR(Admitted(waiter.admit, value.size()));
    return value;
  }

  // Answers the waiter, or lists it under the next key that it lacks.
  void AnswerOrListLocked(std::shared_ptr<Waiter> waiter, Answers& answers)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (const std::string* missing = FirstMissingLocked(*waiter)) {
      waiters_[*missing].push_back(std::move(waiter));
    } else if (std::holds_alternative<async::Promise<void>>(waiter->promise)) {
      answers.push_back([waiter = std::move(waiter)] {
        std::get<async::Promise<void>>(waiter->promise).Set(absl::OkStatus());
      });
    } else {
      auto value = AdmittedValueLocked(*waiter);
      answers.push_back(
          [waiter = std::move(waiter), value = std::move(value)]() mutable {
            std::get<async::Promise<std::string>>(waiter->promise)
                .Set(std::move(value));
          });
    }
  }

  void AnswerWaitersLocked(const std::string& key, Answers& answers)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto node = waiters_.extract(key);
    if (node.empty()) return;
    for (std::shared_ptr<Waiter>& waiter : node.mapped()) {
      AnswerOrListLocked(std::move(waiter), answers);
    }
  }

  // Removes a key whose lease has ended.
  void EraseLocked(const std::string& key, Answers& answers)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto it = values_.find(key);
    const size_t bytes = BytesOf(key, it->second.value);
    total_bytes_ -= bytes;
    ForgetLocked(it->second.client, bytes);
    values_.erase(it);
    AnswerWatchersLocked(key, answers);
  }

  const std::string* FindLocked(const std::string& key) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto it = values_.find(key);
    return it == values_.end() ? nullptr : &it->second.value;
  }

  // Returns the result of a watch, or nullopt if it goes on.
  absl::StatusOr<std::optional<std::vector<std::string>>> ChangedLocked(
      const Watcher& watcher) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return ChangedValues(
        watcher.keys,
        [this](const std::string& key)
            ABSL_NO_THREAD_SAFETY_ANALYSIS { return FindLocked(key); },
        watcher.admit);
  }

  void AnswerWatchersLocked(const std::string& key, Answers& answers)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto it = watchers_.find(key);
    if (it == watchers_.end()) return;
    const WatcherList watchers = it->second;
    for (const std::shared_ptr<Watcher>& watcher : watchers) {
      auto values = ChangedLocked(*watcher);
      if (values.ok() && !values->has_value()) continue;
      RemoveLocked(watcher);
      answers.push_back(
          [watcher, values = ResultOf(std::move(values))]() mutable {
            watcher->promise.Set(std::move(values));
          });
    }
  }

  // Does nothing if the watcher was answered or removed before.
  void RemoveLocked(const std::shared_ptr<Watcher>& watcher)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    bool listed = false;
    for (const WatchedKey& watched : watcher->keys) {
      const auto it = watchers_.find(watched.key);
      if (it == watchers_.end()) continue;
      if (std::erase(it->second, watcher) > 0) listed = true;
      if (it->second.empty()) watchers_.erase(it);
    }
    if (listed) --num_watchers_;
  }

  void ScheduleTickLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (std::exchange(ticking_, true)) return;
    clock_.CallAfter(LeaseSchedule::kTick, [weak = weak_from_this()] {
      if (const auto state = weak.lock(); state != nullptr) state->Tick();
    });
  }

  void Tick() {
    Answers answers;
    {
      async::MutexLock lock(&mutex_);
      ticking_ = false;
      for (const std::string& key : leases_.Tick()) EraseLocked(key, answers);
      if (!leases_.empty()) ScheduleTickLocked();
    }
    Send(answers);
  }

  void Remove(const std::shared_ptr<Waiter>& waiter) {
    async::MutexLock lock(&mutex_);
    for (const std::string& key : waiter->keys) {
      const auto it = waiters_.find(key);
      if (it == waiters_.end()) continue;
      std::erase(it->second, waiter);
      if (it->second.empty()) waiters_.erase(it);
    }
  }

  async::Clock& clock_;
  const StoreLimits limits_;
  const size_t max_client_bytes_;

  mutable async::Mutex mutex_;
  std::unordered_map<std::string, Entry> values_ ABSL_GUARDED_BY(mutex_);
  Clients clients_ ABSL_GUARDED_BY(mutex_);
  // Sum of BytesOf over all keys.
  size_t total_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // Waiters by one key that each of them lacks.
  std::unordered_map<std::string, WaiterList> waiters_ ABSL_GUARDED_BY(mutex_);
  // Watchers by each of their keys, and their number.
  std::unordered_map<std::string, WatcherList> watchers_
      ABSL_GUARDED_BY(mutex_);
  int64_t num_watchers_ ABSL_GUARDED_BY(mutex_) = 0;
  LeaseSchedule leases_ ABSL_GUARDED_BY(mutex_);
  // Whether a timer for the next tick is set.
  bool ticking_ ABSL_GUARDED_BY(mutex_) = false;
};

KeyValueTable::KeyValueTable(async::Clock* clock, StoreLimits limits,
                             size_t max_client_bytes)
    : state_(std::make_shared<State>(clock, limits, max_client_bytes)) {}

KeyValueTable::~KeyValueTable() = default;

absl::Status KeyValueTable::Set(const std::string& key, std::string value,
                                const std::string& client) {
  return state_->Change(
      key, client,
      [&](const std::string*) -> absl::StatusOr<std::optional<std::string>> {
        return std::move(value);
      });
}

absl::Status KeyValueTable::SetLease(const std::string& key, std::string value,
                                     absl::Duration lifetime,
                                     const std::string& client) {
  return state_->Change(
      key, client,
      [&](const std::string*) -> absl::StatusOr<std::optional<std::string>> {
        return std::move(value);
      },
      lifetime);
}

std::optional<std::string> KeyValueTable::Get(const std::string& key) const {
  return state_->Get(key);
}

absl::StatusOr<int64_t> KeyValueTable::Add(const std::string& key,
                                           int64_t delta,
                                           const std::string& client) {
  int64_t sum = 0;
  RETURN_IF_ERROR(
      state_->Change(key, client,
                     [&](const std::string* current)
                         -> absl::StatusOr<std::optional<std::string>> {
                       ASSIGN_OR_RETURN(sum, AddToNumber(key, current, delta));
                       return absl::StrCat(sum);
                     }));
  return sum;
}

absl::StatusOr<int64_t> KeyValueTable::Append(const std::string& key,
                                              const std::string& suffix,
                                              const std::string& client) {
  int64_t bytes = 0;
  RETURN_IF_ERROR(state_->Change(
      key, client,
      [&](const std::string* current)
          -> absl::StatusOr<std::optional<std::string>> {
        ASSIGN_OR_RETURN(
            std::string next,
            Appended(key, current, suffix, state_->limits().max_value_bytes));
        bytes = static_cast<int64_t>(next.size());
        return next;
      }));
  return bytes;
}

absl::StatusOr<CompareAndSetResult> KeyValueTable::CompareAndSet(
    const std::string& key, const std::string& expected, std::string desired,
    const std::string& client) {
  CompareAndSetResult result;
  RETURN_IF_ERROR(
      state_->Change(key, client,
                     [&](const std::string* current)
                         -> absl::StatusOr<std::optional<std::string>> {
                       result.swapped = IsExpected(current, expected);
                       if (result.swapped) {
                         result.value = desired;
                         return std::move(desired);
                       }
                       if (current != nullptr) result.value = *current;
                       return std::nullopt;
                     }));
  return result;
}

bool KeyValueTable::Delete(const std::string& key) {
  return state_->Delete(key);
}

int64_t KeyValueTable::NumKeys() const { return state_->NumKeys(); }

absl::StatusOr<std::vector<std::string>> KeyValueTable::Missing(
    std::span<const std::string> keys) const {
  return state_->Missing(keys);
}

async::Future<void> KeyValueTable::WhenPresent(std::vector<std::string> keys) {
  return state_->WhenPresent<void>(std::move(keys), nullptr);
}

async::Future<std::string> KeyValueTable::WhenValue(std::string key,
                                                    AdmitBytes admit) {
  return state_->WhenPresent<std::string>({std::move(key)}, std::move(admit));
}

async::Future<std::vector<std::string>> KeyValueTable::WhenChanged(
    std::vector<WatchedKey> keys, AdmitBytes admit) {
  return state_->WhenChanged(std::move(keys), std::move(admit));
}

int64_t KeyValueTable::num_waiting() const { return state_->num_waiting(); }

}  // namespace hawser::store::internal

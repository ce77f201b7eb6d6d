#include "store/redis/store.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "async/blocking_region.h"
#include "async/mutex.h"
#include "async/random_source.h"
#include "async/status_macros.h"
#include "store/backoff.h"
#include "store/change_slots.h"
#include "store/endpoint.h"
#include "store/hash/value_operations.h"
#include "store/redis/connection.h"
#include "store/redis/script.h"

namespace hawser::store {
namespace {

using internal::RedisConnection;
using internal::RedisReply;

// Maximum number of idle connections kept for later calls.
constexpr size_t kMaxIdle = 8;

// Time limit of one attempt of a watch to reach Redis. The destructor of the
// store may have to wait for it.
constexpr absl::Duration kWatchAttempt = absl::Seconds(2);
// Pause of a watch that cannot reach Redis.
constexpr absl::Duration kWatchPause = absl::Milliseconds(500);

// Added to the time left of a lease, which Redis rounds to milliseconds.
constexpr absl::Duration kRounding = absl::Milliseconds(2);

async::MonotonicTime After(absl::Duration delay) {
  return async::AddDelay(std::chrono::steady_clock::now(), delay);
}

absl::Status Unexpected() {
  return absl::InternalError(
      "unexpected reply: the server is not a compatible Redis");
}

// Receives messages until one says that a key was created.
absl::Status AwaitCreation(RedisConnection& subscribed,
                           async::MonotonicTime deadline) {
  while (true) {
    ASSIGN_OR_RETURN(const RedisReply message, subscribed.Receive(deadline));
    if (!message.list.empty() && message.list.back().text == "new") {
      return absl::OkStatus();
    }
  }
}

}  // namespace

class RedisStore::Client {
 public:
  Client(internal::RedisEndpoint endpoint, const std::string& prefix)
      : endpoint_(std::move(endpoint)),
        data_(absl::StrCat("hawser:{", prefix, "}")),
        channel_(absl::StrCat(data_, ":", endpoint_.database, ":")),
        id_(async::RandomSource::FromEntropy().Next()) {}

  // Reads the id of the data, or sets it if there is none.
  absl::Status Begin(async::MonotonicTime deadline) {
    ASSIGN_OR_RETURN(
        std::vector<std::string> answer,
        Run({"begin", "", "", absl::StrCat(absl::Hex(id_))}, "", deadline));
    mark_ = std::move(answer[1]);
    return absl::OkStatus();
  }

  // Returns Redis's limit on strings, if the user may query it.
  size_t MaxStringBytes(async::MonotonicTime deadline) {
    constexpr size_t kDefault = size_t{512} << 20;
    absl::StatusOr<Connected> connected = Connect(deadline);
    if (!connected.ok()) return kDefault;
    const std::string ask[] = {"CONFIG", "GET", "proto-max-bulk-len"};
    const absl::StatusOr<RedisReply> reply =
        connected->connection->Call(ask, deadline);
    if (reply.ok()) Keep(*std::move(connected));
    uint64_t bytes = 0;
    if (!reply.ok() || reply->list.size() != 2 ||
        !absl::SimpleAtoi(reply->list[1].text, &bytes)) {
      return kDefault;
    }
    return bytes;
  }

  // Runs the script and returns its reply, which has at least two elements, the
  // first being "done" or "refused".
  absl::StatusOr<std::vector<std::string>> Read(
      std::string operation, std::span<const std::string> arguments,
      async::MonotonicTime deadline) {
    std::vector<std::string> words = {std::move(operation), "", channel_};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return Run(std::move(words), "", deadline);
  }
  absl::StatusOr<std::vector<std::string>> Change(
      std::string operation, std::span<const std::string> arguments,
      async::MonotonicTime deadline) {
    const internal::ChangeSlots::Change change(&slots_);
    std::vector<std::string> words = {
        std::move(operation), absl::StrCat(change.sequence()), channel_};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return Run(
        std::move(words),
        absl::StrCat(data_, ":changes:", absl::Hex(id_), ":", change.slot()),
        deadline);
  }

  // Returns a connection that receives a message for each change of `keys` from
  // now on.
  absl::StatusOr<std::unique_ptr<RedisConnection>> Subscribe(
      std::span<const std::string> keys, async::MonotonicTime deadline) {
    ASSIGN_OR_RETURN(std::unique_ptr<RedisConnection> connection,
                     RedisConnection::Open(endpoint_, deadline));
    std::vector<std::string> command = {"SUBSCRIBE"};
    for (const std::string& key : keys) command.push_back(channel_ + key);
    RETURN_IF_ERROR(connection->Call(command, deadline).status());
    // One reply per channel.
    for (size_t i = 1; i < keys.size(); ++i) {
      RETURN_IF_ERROR(connection->Receive(deadline).status());
    }
    return connection;
  }

 private:
  struct Connected {
    std::unique_ptr<RedisConnection> connection;
    // Digest by which Redis identifies the script.
    std::string script;
  };

  absl::StatusOr<Connected> Connect(async::MonotonicTime deadline) {
    {
      async::MutexLock lock(&mutex_);
      if (!idle_.empty()) {
        Connected connected = std::move(idle_.back());
        idle_.pop_back();
        return connected;
      }
    }
    Connected connected;
    ASSIGN_OR_RETURN(connected.connection,
                     RedisConnection::Open(endpoint_, deadline));
    const std::string load[] = {"SCRIPT", "LOAD", internal::kRedisScript};
    ASSIGN_OR_RETURN(RedisReply reply,
                     connected.connection->Call(load, deadline));
    connected.script = std::move(reply.text);
    return connected;
  }

  // Keeps a connection for the next call, or closes it if there are enough.
  void Keep(Connected connected) {
    async::MutexLock lock(&mutex_);
    if (idle_.size() < kMaxIdle) idle_.push_back(std::move(connected));
  }

  absl::StatusOr<RedisReply> Attempt(std::vector<std::string>& command,
                                     async::MonotonicTime deadline) {
    ASSIGN_OR_RETURN(Connected connected, Connect(deadline));
    command[1] = connected.script;
    absl::StatusOr<RedisReply> reply =
        connected.connection->Call(command, deadline);
    if (reply.ok()) Keep(std::move(connected));
    return reply;
  }

  // Retries until there is a reply; the sequence identifies a change.
  absl::StatusOr<std::vector<std::string>> Run(std::vector<std::string> words,
                                               std::string slot,
                                               async::MonotonicTime deadline) {
    std::vector<std::string> command = {
        "EVALSHA",         "",   "4", data_, data_ + ":mark", std::move(slot),
        data_ + ":leases", mark_};
    command.insert(command.end(), std::make_move_iterator(words.begin()),
                   std::make_move_iterator(words.end()));
    async::BlockingRegion region;
    internal::Backoff backoff;
    absl::StatusOr<RedisReply> reply;
    while (absl::IsUnavailable((reply = Attempt(command, deadline)).status())) {
      if (std::chrono::steady_clock::now() >= deadline) {
        return absl::DeadlineExceededError(reply.status().message());
      }
      backoff.Pause(deadline);
    }
    RETURN_IF_ERROR(reply.status());
    std::vector<std::string> answer;
    for (RedisReply& element : reply->list) {
      answer.push_back(std::move(element.text));
    }
    if (!answer.empty() && answer[0] == "lost") {
      return absl::FailedPreconditionError(
          "the store's data is lost: Redis was restarted without persistence, "
          "was flushed, or evicts keys; restart the job");
    }
    if (answer.size() < 2) return Unexpected();
    return answer;
  }

  const internal::RedisEndpoint endpoint_;
  const std::string data_;
  // Prefix of channel names, which all databases share.
  const std::string channel_;
  const uint64_t id_;
  // Written by Begin before Connect returns.
  std::string mark_;
  internal::ChangeSlots slots_;

  async::Mutex mutex_;
  std::vector<Connected> idle_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<std::unique_ptr<RedisStore>> RedisStore::Connect(
    RedisStoreOptions options) {
  const std::string address = ToString(Endpoint{options.host, options.port});
  if (options.host.empty() || options.port < 1 || options.port > 65535 ||
      options.database < 0 || options.prefix.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("Redis store at ", address,
                     ": needs a host, a port within 1..65535, a database of 0 "
                     "or more and a prefix"));
  }
  if (options.timeout < absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("Redis store at ", address, ": the timeout ",
                     absl::FormatDuration(options.timeout), " is negative"));
  }
  auto client = std::make_unique<Client>(
      internal::RedisEndpoint{.host = options.host,
                              .port = options.port,
                              .username = options.username,
                              .password = options.password,
                              .database = options.database},
      options.prefix);
  const async::MonotonicTime deadline =
      async::AddDelay(std::chrono::steady_clock::now(), options.timeout);
  const absl::Status status = client->Begin(deadline);
  if (absl::IsDeadlineExceeded(status)) {
    return absl::UnavailableError(absl::StrCat(
        "no Redis server replied at ", address, " within ",
        absl::FormatDuration(options.timeout), " (", status.message(),
        "): check the address and that Redis runs"));
  }
  if (!status.ok()) {
    return absl::Status(status.code(), absl::StrCat("Redis store at ", address,
                                                    ": ", status.message()));
  }
  options.limits.max_value_bytes = std::min(options.limits.max_value_bytes,
                                            client->MaxStringBytes(deadline));
  return std::unique_ptr<RedisStore>(
      new RedisStore(options, std::move(client)));
}

RedisStore::RedisStore(const RedisStoreOptions& options,
                       std::unique_ptr<Client> client)
    : Store(absl::StrCat("Redis store at ",
                         ToString(Endpoint{options.host, options.port}), "/",
                         options.database, "/", options.prefix),
            options.timeout, options.limits),
      client_(std::move(client)) {}

RedisStore::~RedisStore() { watches_.Stop(); }

// --- Waiting.

absl::StatusOr<std::string> RedisStore::DoGet(const std::string& key,
                                              const CallTime& time) {
  while (true) {
    auto answer = client_->Read("get", {&key, 1}, LookDeadline(time));
    if (!answer.ok()) return Named(answer.status(), key, time);
    if (answer->size() == 3) return std::move((*answer)[2]);
    RETURN_IF_ERROR(DoWait({&key, 1}, time));
  }
}

absl::StatusOr<size_t> RedisStore::FirstMissing(
    std::span<const std::string> keys, async::MonotonicTime deadline) {
  ASSIGN_OR_RETURN(const std::vector<std::string> answer,
                   client_->Read("missing", keys, deadline));
  uint64_t index = 0;
  if (!absl::SimpleAtoi(answer[1], &index)) return Unexpected();
  return index;
}

// 1. Reads the keys.
// 2. Subscribes to the missing keys, and reads again.
// 3. Reads again once a key is created; on a lost connection, goes back to 2.
absl::Status RedisStore::DoWait(std::span<const std::string> keys,
                                const CallTime& time) {
  async::BlockingRegion region;
  internal::Backoff backoff;
  std::unique_ptr<RedisConnection> subscribed;
  while (true) {
    const auto missing = FirstMissing(keys, LookDeadline(time));
    if (!missing.ok()) return Named(missing.status(), keys.front(), time);
    if (*missing >= keys.size()) return absl::OkStatus();
    const std::string& key = keys[*missing];
    if (std::chrono::steady_clock::now() >= time.deadline) {
      return TimeoutError(key, time, "");
    }
    absl::Status status;
    if (subscribed == nullptr) {
      auto connection = client_->Subscribe(keys, time.deadline);
      status = connection.status();
      if (status.ok()) subscribed = *std::move(connection);
    } else {
      status = AwaitCreation(*subscribed, time.deadline);
    }
    if (absl::IsUnavailable(status)) {
      subscribed = nullptr;
      backoff.Pause(time.deadline);
    } else if (absl::IsDeadlineExceeded(status)) {
      return subscribed != nullptr ? TimeoutError(key, time, "")
                                   : Named(status, key, time);
    } else if (!status.ok()) {
      return Named(status, key, time);
    }
  }
}

async::Future<std::vector<std::string>> RedisStore::DoWhenChanged(
    std::vector<WatchedKey> keys) {
  return watches_.Start(
      [this, keys = std::move(keys)](internal::WatchThreads::Watch& watch) {
        return Watch(keys, watch);
      });
}

// 1. Subscribes to the keys.
// 2. Reads them.
// 3. Reads again on each message, and when the first lease of the keys ends; on
//    a lost connection, goes back to 1.
absl::StatusOr<std::vector<std::string>> RedisStore::Watch(
    std::span<const WatchedKey> keys, internal::WatchThreads::Watch& watch) {
  std::vector<std::string> names;
  names.reserve(keys.size());
  for (const WatchedKey& watched : keys) names.push_back(watched.key);
  std::unique_ptr<RedisConnection> subscribed;
  while (!watch.cancelled()) {
    absl::Status status;
    if (subscribed == nullptr) {
      auto connection = client_->Subscribe(names, After(kWatchAttempt));
      status = connection.status();
      if (status.ok()) subscribed = *std::move(connection);
    }
    absl::StatusOr<Look> look;
    if (status.ok()) {
      look = LookAt(keys, After(kWatchAttempt));
      status = look.status();
    }
    if (status.ok()) {
      if (look->changed.has_value()) return *std::move(look->changed);
      const internal::WatchThreads::Interruptible receiving(
          &watch, [&] { subscribed->Interrupt(); });
      status = subscribed->Receive(look->again).status();
      // A lease should have ended.
      if (absl::IsDeadlineExceeded(status)) continue;
    }
    if (status.ok()) continue;
    if (!absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status)) {
      return absl::Status(status.code(),
                          absl::StrCat(description(), ": ", status.message()));
    }
    subscribed = nullptr;
    watch.PauseUntil(After(kWatchPause));
  }
  return absl::CancelledError("");
}

absl::StatusOr<RedisStore::Look> RedisStore::LookAt(
    std::span<const WatchedKey> keys, async::MonotonicTime deadline) {
  std::vector<std::string> names;
  names.reserve(keys.size());
  for (const WatchedKey& watched : keys) names.push_back(watched.key);
  ASSIGN_OR_RETURN(const std::vector<std::string> answer,
                   client_->Read("look", names, deadline));
  if (answer.size() != 2 + 2 * keys.size()) return Unexpected();
  absl::flat_hash_map<std::string_view, const std::string*> values;
  for (size_t i = 0; i < keys.size(); ++i) {
    const bool present = answer[2 + 2 * i] == "1";
    values[names[i]] = present ? &answer[3 + 2 * i] : nullptr;
  }
  Look look;
  ASSIGN_OR_RETURN(look.changed,
                   internal::ChangedValues(keys, [&](const std::string& key) {
                     return values.find(key)->second;
                   }));
  if (answer[1].empty()) return look;
  int64_t left_ms = 0;
  if (!absl::SimpleAtoi(answer[1], &left_ms)) return Unexpected();
  look.again = After(absl::Milliseconds(left_ms) + kRounding);
  return look;
}

absl::StatusOr<bool> RedisStore::DoCheck(std::span<const std::string> keys,
                                         const CallTime& time) {
  const auto missing = FirstMissing(keys, LookDeadline(time));
  if (!missing.ok()) return Named(missing.status(), keys.front(), time);
  return *missing >= keys.size();
}

absl::StatusOr<int64_t> RedisStore::DoNumKeys(const CallTime& time) {
  const auto answer = client_->Read("count", {}, time.deadline);
  if (!answer.ok()) return Named(answer.status(), "", time);
  int64_t count = 0;
  if (!absl::SimpleAtoi((*answer)[1], &count)) return Unexpected();
  return count;
}

// --- Changes.

absl::Status RedisStore::DoSet(const std::string& key, std::string value,
                               const CallTime& time) {
  const std::string arguments[] = {key, std::move(value)};
  return Named(client_->Change("set", arguments, time.deadline).status(), key,
               time);
}

absl::Status RedisStore::DoSetLease(const std::string& key, std::string value,
                                    absl::Duration lifetime,
                                    const CallTime& time) {
  const std::string arguments[] = {
      key, std::move(value),
      absl::StrCat(absl::ToInt64Milliseconds(
          absl::Ceil(lifetime, absl::Milliseconds(1))))};
  return Named(client_->Change("lease", arguments, time.deadline).status(), key,
               time);
}

absl::StatusOr<int64_t> RedisStore::DoAdd(const std::string& key, int64_t delta,
                                          const CallTime& time) {
  const std::string arguments[] = {key, absl::StrCat(delta)};
  const auto answer = client_->Change("add", arguments, time.deadline);
  if (!answer.ok()) return Named(answer.status(), key, time);
  if ((*answer)[0] == "refused") {
    RETURN_IF_ERROR(internal::AddToNumber(key, &(*answer)[1], delta).status());
    return absl::InvalidArgumentError(
        absl::StrCat(description(), ": the value of the key is not a number"));
  }
  int64_t sum = 0;
  if (!absl::SimpleAtoi((*answer)[1], &sum)) return Unexpected();
  return sum;
}

absl::StatusOr<int64_t> RedisStore::DoAppend(const std::string& key,
                                             std::string suffix,
                                             const CallTime& time) {
  const std::string arguments[] = {key, suffix,
                                   absl::StrCat(limits().max_value_bytes)};
  const auto answer = client_->Change("append", arguments, time.deadline);
  if (!answer.ok()) return Named(answer.status(), key, time);
  if ((*answer)[0] == "refused") {
    return internal::Appended(key, &(*answer)[1], suffix,
                              limits().max_value_bytes)
        .status();
  }
  int64_t bytes = 0;
  if (!absl::SimpleAtoi((*answer)[1], &bytes)) return Unexpected();
  return bytes;
}

absl::StatusOr<CompareAndSetResult> RedisStore::DoCompareAndSet(
    const std::string& key, std::string expected, std::string desired,
    const CallTime& time) {
  const std::string arguments[] = {key, std::move(expected), desired};
  auto answer = client_->Change("compare", arguments, time.deadline);
  if (!answer.ok()) return Named(answer.status(), key, time);
  if (answer->size() != 3) return Unexpected();
  const bool swapped = (*answer)[1] == "1";
  return CompareAndSetResult{
      .value = swapped ? std::move(desired) : std::move((*answer)[2]),
      .swapped = swapped};
}

absl::StatusOr<bool> RedisStore::DoDelete(const std::string& key,
                                          const CallTime& time) {
  const auto answer = client_->Change("delete", {&key, 1}, time.deadline);
  if (!answer.ok()) return Named(answer.status(), key, time);
  return (*answer)[1] == "1";
}

}  // namespace hawser::store

#ifndef HAWSER_STORE_STORE_H_
#define HAWSER_STORE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/mutex.h"
#include "store/store_limits.h"

namespace hawser::store {

// Default timeout of store calls.
inline constexpr absl::Duration kDefaultTimeout = absl::Seconds(300);

// Bounds of the lifetime of a lease.
inline constexpr absl::Duration kMinLifetime = absl::Milliseconds(100);
inline constexpr absl::Duration kMaxLifetime = absl::Hours(24);

// The largest result of a watch: the bytes of its values, and 16 for each.
inline constexpr size_t kMaxWatchedBytes = size_t{64} << 20;

struct CompareAndSetResult {
  // Value of the key after the call; empty if it is absent.
  std::string value;
  // Whether this call set that value.
  bool swapped = false;
};

// A key that Store::WhenChanged watches.
struct WatchedKey {
  std::string key;
  // The value known to the caller: the watch ends once the key has another one.
  // An absent key counts as an empty value. With nullopt the watch ends once
  // the key is absent.
  std::optional<std::string> known;
};

// A key-value store through which the workers of a job find each other. Keys
// and values are bytes; keys must not be empty.
//
// Each call is atomic among all clients of the same data. Thread-safe: a
// waiting call does not delay other calls on the same object. Calls block;
// those that wait do so inside an async::BlockingRegion. The object must
// outlive its calls.
//
// Timeouts bound the whole call. absl::InfiniteDuration() waits forever;
// negative timeouts are kInvalidArgument. A read with timeout zero reads once,
// which takes at most one second: kDeadlineExceeded means that a key is absent,
// kUnavailable that there was no reply.
//
// Errors of all stores:
//   kDeadlineExceeded    the timeout passed; names key, time waited and store.
//                        A change may or may not have been applied.
//   kUnavailable         no reply to a read with timeout zero.
//   kInvalidArgument     empty key; key or value above the limits; negative
//                        timeout.
//   kResourceExhausted   the store is full.
// Backends document further errors. After a failed change the caller may safely
// retry Set; a retry of the other changes may apply them twice.
class Store {
 public:
  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Replaces the value.
  absl::Status Set(std::string_view key, std::string_view value,
                   std::optional<absl::Duration> timeout = {});

  // Sets the value as a lease: the store removes the key once `lifetime` has
  // passed without another SetLease of it. Set, Add, Append and CompareAndSet
  // make the key permanent again. kInvalidArgument if `lifetime` is not within
  // kMinLifetime and kMaxLifetime.
  //
  // The store measures the lifetime, from the moment at which it applies the
  // change, and may remove the key later than that: docs/store.md says for each
  // store by how much, and which clock it uses. A retry of SetLease is as safe
  // as one of Set.
  absl::Status SetLease(std::string_view key, std::string_view value,
                        absl::Duration lifetime,
                        std::optional<absl::Duration> timeout = {});

  // Returns the value once the key is present.
  absl::StatusOr<std::string> Get(std::string_view key,
                                  std::optional<absl::Duration> timeout = {});

  // Adds to a number, with an absent key counting as 0. Returns the sum, which
  // Get returns as decimal text. kInvalidArgument if the value is not a number,
  // kOutOfRange on overflow; the value is then unchanged.
  absl::StatusOr<int64_t> Add(std::string_view key, int64_t delta,
                              std::optional<absl::Duration> timeout = {});

  // Appends to the value, with an absent key counting as empty; returns the new
  // length.
  absl::StatusOr<int64_t> Append(std::string_view key, std::string_view suffix,
                                 std::optional<absl::Duration> timeout = {});

  // Sets the key to `desired` if it equals `expected`. An empty `expected`
  // matches both an absent key and an empty value.
  absl::StatusOr<CompareAndSetResult> CompareAndSet(
      std::string_view key, std::string_view expected, std::string_view desired,
      std::optional<absl::Duration> timeout = {});

  // Returns once all `keys` are present at the same time.
  absl::Status Wait(std::span<const std::string> keys,
                    std::optional<absl::Duration> timeout = {});

  // Completes once at least one of `keys` has changed as WatchedKey says, with
  // the values of all `keys` at that moment; absent ones are empty.
  // Intermediate values may be missed. Has no timeout: Cancel the future to end
  // the watch. While the store does not reply, the watch goes on.
  //
  // The future completes in any thread of the store, or in the call if a key
  // has changed already; its callbacks must not destroy the store, whose
  // destructor ends its watches with kCancelled and waits for their callbacks.
  // Errors are those of Get, and kResourceExhausted if the values have more
  // than kMaxWatchedBytes. `keys` must not be empty.
  async::Future<std::vector<std::string>> WhenChanged(
      std::vector<WatchedKey> keys);

  // Whether all `keys` are present now.
  absl::StatusOr<bool> Check(std::span<const std::string> keys,
                             std::optional<absl::Duration> timeout = {});

  // Removes a key; returns whether it was present.
  absl::StatusOr<bool> Delete(std::string_view key,
                              std::optional<absl::Duration> timeout = {});

  // Number of keys in the store, including those of all prefixes.
  absl::StatusOr<int64_t> NumKeys(std::optional<absl::Duration> timeout = {});

  // Default timeout of calls. A change applies to later calls.
  absl::Duration timeout() const;
  absl::Status SetTimeout(absl::Duration timeout);

  // Names the store in errors: "file store /tmp/job".
  const std::string& description() const { return description_; }

 protected:
  // Start time and deadline of a call.
  struct CallTime {
    async::MonotonicTime start;
    async::MonotonicTime deadline;
  };

  Store(std::string description, absl::Duration timeout, StoreLimits limits);

  // The deadline of a read. With timeout zero, a store in another process gets
  // time for one read.
  static async::MonotonicTime LookDeadline(const CallTime& time);

  // Converts `status`, a server's reply or kDeadlineExceeded if there was none,
  // to the error of a call on `key` (empty: on the whole store).
  absl::Status Named(const absl::Status& status, std::string_view key,
                     const CallTime& time) const;

  // Returns kDeadlineExceeded for a call on `key` as above; `cause` may be
  // empty.
  absl::Status TimeoutError(std::string_view key, const CallTime& time,
                            std::string_view cause) const;

  const StoreLimits& limits() const { return limits_; }

 private:
  // Forwards to the underlying store within the timeout of its own call.
  friend class PrefixStore;

  // The calls above, with validated arguments.
  virtual absl::Status DoSet(const std::string& key, std::string value,
                             const CallTime& time) = 0;
  virtual absl::Status DoSetLease(const std::string& key, std::string value,
                                  absl::Duration lifetime,
                                  const CallTime& time) = 0;
  virtual async::Future<std::vector<std::string>> DoWhenChanged(
      std::vector<WatchedKey> keys) = 0;
  virtual absl::StatusOr<std::string> DoGet(const std::string& key,
                                            const CallTime& time) = 0;
  virtual absl::StatusOr<int64_t> DoAdd(const std::string& key, int64_t delta,
                                        const CallTime& time) = 0;
  virtual absl::StatusOr<int64_t> DoAppend(const std::string& key,
                                           std::string suffix,
                                           const CallTime& time) = 0;
  virtual absl::StatusOr<CompareAndSetResult> DoCompareAndSet(
      const std::string& key, std::string expected, std::string desired,
      const CallTime& time) = 0;
  virtual absl::Status DoWait(std::span<const std::string> keys,
                              const CallTime& time) = 0;
  virtual absl::StatusOr<bool> DoCheck(std::span<const std::string> keys,
                                       const CallTime& time) = 0;
  virtual absl::StatusOr<bool> DoDelete(const std::string& key,
                                        const CallTime& time) = 0;
  virtual absl::StatusOr<int64_t> DoNumKeys(const CallTime& time) = 0;

  absl::Status CheckKey(std::string_view key) const;
  absl::Status CheckKeys(std::span<const std::string> keys) const;
  absl::Status CheckValue(std::string_view key, std::string_view value) const;
  absl::StatusOr<CallTime> Within(std::optional<absl::Duration> timeout) const;

  const std::string description_;
  const StoreLimits limits_;

  mutable async::Mutex mutex_;
  absl::Duration timeout_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::store

#endif  // HAWSER_STORE_STORE_H_

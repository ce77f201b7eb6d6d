#ifndef HAWSER_STORE_STORE_H_
#define HAWSER_STORE_STORE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/mutex.h"
#include "store/store_limits.h"

namespace hawser::store {

// Default timeout of a store's calls.
inline constexpr absl::Duration kDefaultTimeout = absl::Seconds(300);

struct CompareAndSetResult {
  // Value of the key after the call; empty if it is absent.
  std::string value;
  // Whether this call gave it that value.
  bool swapped = false;
};

// A key-value store by which the workers of a job find each other. Keys and
// values are bytes; keys are not empty.
//
// Each call is atomic among all clients of the same data. Thread-safe: a call
// that waits keeps no other call of the same object waiting. Calls block;
// those that wait do so inside an async::BlockingRegion. The object must
// outlive its calls.
//
// Timeouts: absl::InfiniteDuration() is for ever, negative ones are
// kInvalidArgument. They bound the whole call. For calls that read zero looks
// once, which takes a second at most: kDeadlineExceeded says that a key is not
// there, kUnavailable that there was no answer.
//
// Errors of all stores:
//   kDeadlineExceeded    not done in time; names key, time waited and store.
//                        Of a change, it is not known whether it was made.
//   kUnavailable         no answer to a call that looks once.
//   kInvalidArgument     empty key; key or value above the limits; negative
//                        timeout.
//   kResourceExhausted   the store is full.
// A backend adds its own, see there. A failed change may be repeated by the
// caller if Set; the others may then apply twice.
class Store {
 public:
  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Replaces the value.
  absl::Status Set(std::string_view key, std::string_view value,
                   std::optional<absl::Duration> timeout = {});

  // The value, once the key is present.
  absl::StatusOr<std::string> Get(std::string_view key,
                                  std::optional<absl::Duration> timeout = {});

  // Adds to a number, absent counting as 0; returns the sum, which Get shows
  // as decimal text. kInvalidArgument if the value is not a number,
  // kOutOfRange on overflow: unchanged.
  absl::StatusOr<int64_t> Add(std::string_view key, int64_t delta,
                              std::optional<absl::Duration> timeout = {});

  // Appends to the value, absent counting as empty; returns its new length.
  absl::StatusOr<int64_t> Append(std::string_view key, std::string_view suffix,
                                 std::optional<absl::Duration> timeout = {});

  // Sets the key to `desired` if it equals `expected`. An absent key equals
  // the empty `expected`, as one that is set to empty does.
  absl::StatusOr<CompareAndSetResult> CompareAndSet(
      std::string_view key, std::string_view expected, std::string_view desired,
      std::optional<absl::Duration> timeout = {});

  // Returns once all `keys` are present at the same time, whichever call made
  // them so.
  absl::Status Wait(std::span<const std::string> keys,
                    std::optional<absl::Duration> timeout = {});

  // Whether all `keys` are present now.
  absl::StatusOr<bool> Check(std::span<const std::string> keys,
                             std::optional<absl::Duration> timeout = {});

  // Removes a key; whether it was present.
  absl::StatusOr<bool> Delete(std::string_view key,
                              std::optional<absl::Duration> timeout = {});

  // Number of keys in the store, those of all prefixes.
  absl::StatusOr<int64_t> NumKeys(std::optional<absl::Duration> timeout = {});

  // The timeout of calls that state none. Changing it applies to later calls.
  absl::Duration timeout() const;
  absl::Status SetTimeout(absl::Duration timeout);

  // Names the store in errors: "file store /tmp/job".
  const std::string& description() const { return description_; }

 protected:
  // When a call began and when it gives up.
  struct CallTime {
    async::MonotonicTime start;
    async::MonotonicTime deadline;
  };

  Store(std::string description, absl::Duration timeout, StoreLimits limits);

  // The deadline, or for a timeout of zero that of looking once, where it means
  // asking another process.
  static async::MonotonicTime LookDeadline(const CallTime& time);

  // What a call on `key` (empty: on the whole store) tells its caller of
  // `status`, which a server gave, or kDeadlineExceeded if it gave none.
  absl::Status Named(const absl::Status& status, std::string_view key,
                     const CallTime& time) const;

  // kDeadlineExceeded for a call on `key` as above; `cause` may be empty.
  absl::Status TimeoutError(std::string_view key, const CallTime& time,
                            std::string_view cause) const;

  const StoreLimits& limits() const { return limits_; }

 private:
  // Forwards to the store below, within the time of its own call.
  friend class PrefixStore;

  // The calls above, with arguments that were checked.
  virtual absl::Status DoSet(const std::string& key, std::string value,
                             const CallTime& time) = 0;
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

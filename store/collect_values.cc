#include "store/collect_values.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/mutex.h"

namespace hawser::store {
namespace {

constexpr size_t kMaxWatchedKeys = 64;

class Collection : public std::enable_shared_from_this<Collection> {
 public:
  using Values = std::vector<std::string>;

  Collection(Store* store, Values keys)
      : store_(*store),
        keys_(std::move(keys)),
        values_(keys_.size()),
        missing_(keys_.size()) {
    // The next key is at the end.
    std::iota(missing_.rbegin(), missing_.rend(), size_t{0});
  }

  async::Future<Values> Start() {
    async::Future<Values> future = promise_.future();
    promise_.OnCancel([weak = weak_from_this()] {
      if (const auto collection = weak.lock(); collection != nullptr) {
        collection->Cancel();
      }
    });
    Continue();
    return future;
  }

 private:
  void Cancel() {
    async::Future<Values> watch;
    {
      async::MutexLock lock(&mutex_);
      cancelled_ = true;
      watch = std::exchange(watch_, async::Future<Values>());
    }
    if (watch.valid()) watch.Cancel();
  }

  // Watches missing keys until a watch does not complete at once.
  void Continue() {
    while (!missing_.empty()) {
      const size_t count = std::min(kMaxWatchedKeys, missing_.size());
      std::vector<WatchedKey> watched;
      for (size_t i = 0; i < count; ++i) {
        watched.push_back(
            {.key = keys_[missing_[missing_.size() - 1 - i]], .known = ""});
      }
      const async::Future<Values> watch =
          store_.WhenChanged(std::move(watched));
      if (!watch.ready()) {
        Await(watch, count);
        return;
      }
      if (!Take(watch.result(), count)) return;
    }
    promise_.Set(std::move(values_));
  }

  void Await(const async::Future<Values>& watch, size_t count) {
    bool cancelled = false;
    {
      async::MutexLock lock(&mutex_);
      cancelled = cancelled_;
      watch_ = watch;
    }
    if (cancelled) watch.Cancel();
    watch.OnReady([self = shared_from_this(),
                   count](const absl::StatusOr<Values>& values) {
      if (self->Take(values, count)) self->Continue();
    });
  }

  // Stores the values of the last `count` missing keys. Returns false, and ends
  // the collection, if there are none.
  bool Take(const absl::StatusOr<Values>& values, size_t count) {
    if (!values.ok() || values->size() != count) {
      promise_.Set(values.ok()
                       ? absl::InternalError("the store's reply to a watch is "
                                             "incomplete")
                       : values.status());
      return false;
    }
    std::vector<size_t> still_missing;
    for (size_t i = count; i > 0; --i) {
      const size_t index = missing_[missing_.size() - i];
      const std::string& value = (*values)[i - 1];
      if (value.empty()) {
        still_missing.push_back(index);
      } else {
        values_[index] = value;
      }
    }
    missing_.resize(missing_.size() - count);
    missing_.insert(missing_.end(), still_missing.begin(), still_missing.end());
    return true;
  }

  Store& store_;
  const Values keys_;
  async::Promise<Values> promise_;
  // Used by one watch at a time.
  Values values_;
  std::vector<size_t> missing_;

  async::Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  async::Future<Values> watch_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

async::Future<std::vector<std::string>> CollectValues(
    Store* store, std::vector<std::string> keys) {
  return std::make_shared<Collection>(store, std::move(keys))->Start();
}

}  // namespace hawser::store

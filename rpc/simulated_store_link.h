// One worker's way to a store that is shared within a simulation.

#ifndef HAWSER_RPC_SIMULATED_STORE_LINK_H_
#define HAWSER_RPC_SIMULATED_STORE_LINK_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "store/store.h"

namespace hawser::rpc {

// Forwards to a store in memory; while cut, every call fails at once with
// kUnavailable and changes nothing. Never waits by itself. Thread-safe.
class SimulatedStoreLink final : public store::Store {
 public:
  // `target` outlives this. `on_read`, unless null, runs before a value is
  // read, in the reading thread, and may block it.
  explicit SimulatedStoreLink(
      store::Store* target,
      std::function<void(const std::string& key)> on_read = nullptr)
      : Store("simulated store", store::kDefaultTimeout, {}),
        target_(*target),
        on_read_(std::move(on_read)) {}

  void Cut(bool cut) { cut_.store(cut); }
  bool cut() const { return cut_.load(); }

 private:
  absl::Status CheckLink() const {
    return cut() ? absl::UnavailableError("the store is out of reach")
                 : absl::OkStatus();
  }

  absl::Status DoSet(const std::string& key, std::string value,
                     const CallTime&) override {
    absl::Status link = CheckLink();
    return link.ok() ? target_.Set(key, value) : link;
  }
  absl::StatusOr<std::string> DoGet(const std::string& key,
                                    const CallTime&) override {
    if (on_read_ != nullptr) on_read_(key);
    absl::Status link = CheckLink();
    if (!link.ok()) return link;
    return target_.Get(key, absl::ZeroDuration());
  }
  absl::StatusOr<int64_t> DoAdd(const std::string& key, int64_t delta,
                                const CallTime&) override {
    absl::Status link = CheckLink();
    if (!link.ok()) return link;
    return target_.Add(key, delta);
  }
  absl::StatusOr<int64_t> DoAppend(const std::string& key, std::string suffix,
                                   const CallTime&) override {
    absl::Status link = CheckLink();
    if (!link.ok()) return link;
    return target_.Append(key, suffix);
  }
  absl::StatusOr<store::CompareAndSetResult> DoCompareAndSet(
      const std::string& key, std::string expected, std::string desired,
      const CallTime&) override {
    absl::Status link = CheckLink();
    if (!link.ok()) return link;
    return target_.CompareAndSet(key, expected, desired);
  }
  absl::Status DoWait(std::span<const std::string> keys,
                      const CallTime&) override {
    absl::Status link = CheckLink();
    return link.ok() ? target_.Wait(keys, absl::ZeroDuration()) : link;
  }
  absl::StatusOr<bool> DoCheck(std::span<const std::string> keys,
                               const CallTime&) override {
    absl::Status link = CheckLink();
    if (!link.ok()) return link;
    return target_.Check(keys);
  }
  absl::StatusOr<bool> DoDelete(const std::string& key,
                                const CallTime&) override {
    absl::Status link = CheckLink();
    if (!link.ok()) return link;
    return target_.Delete(key);
  }
  absl::StatusOr<int64_t> DoNumKeys(const CallTime&) override {
    absl::Status link = CheckLink();
    if (!link.ok()) return link;
    return target_.NumKeys();
  }

  store::Store& target_;
  const std::function<void(const std::string& key)> on_read_;
  std::atomic<bool> cut_{false};
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_SIMULATED_STORE_LINK_H_

// One worker's link to the shared store of a simulation.

#ifndef HAWSER_RPC_TESTING_SIMULATED_STORE_LINK_H_
#define HAWSER_RPC_TESTING_SIMULATED_STORE_LINK_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "rpc/testing/fakes/simulated_watches.h"
#include "store/store.h"

namespace hawser::rpc {

// Forwards to a store in memory. While partitioned, every call fails at once
// with kUnavailable and changes nothing; watches wait until the partition has
// healed, then see the values of that time. While full, calls that change
// values fail at once with kResourceExhausted and change nothing. Does not wait
// by itself. Thread-safe.
class SimulatedStoreLink final : public store::Store {
 public:
  // Hooks into a call; all may be null, and may block the calling thread.
  struct Hooks {
    // Runs before a value is read or a key is checked.
    std::function<void(const std::string& key)> on_read = nullptr;
    // Runs on the way to the store and on the way back. If the link is
    // partitioned meanwhile, the call fails; on the way back, after the change
    // was applied.
    std::function<void()> on_way = nullptr;
    // Runs while a call waits for keys: lets others run, and returns whether to
    // check again. If null, calls do not wait.
    std::function<bool()> on_wait = nullptr;
  };

  // `target` must outlive this object.
  explicit SimulatedStoreLink(store::Store* target)
      : SimulatedStoreLink(target, Hooks()) {}
  SimulatedStoreLink(store::Store* target, Hooks hooks)
      : Store("simulated store", store::kDefaultTimeout, {}),
        target_(*target),
        hooks_(std::move(hooks)) {}

  ~SimulatedStoreLink() override { watches_->Stop(); }

  void SetPartitioned(bool partitioned) {
    partitioned_.store(partitioned);
    watches_->SetPartitioned(partitioned);
  }
  bool partitioned() const { return partitioned_.load(); }

  void SetFull(bool full) { full_.store(full); }
  bool full() const { return full_.load(); }

 private:
  absl::Status CheckReachable() const {
    if (hooks_.on_way != nullptr) hooks_.on_way();
    return partitioned() ? absl::UnavailableError("the store is out of reach")
                         : absl::OkStatus();
  }

  // Returns the result of `call`, unless the link is partitioned.
  template <class Call>
  auto Ask(Call call) const -> decltype(call()) {
    if (absl::Status there = CheckReachable(); !there.ok()) return there;
    auto result = call();
    if (absl::Status back = CheckReachable(); !back.ok()) return back;
    return result;
  }

  // As Ask, for a call that changes a value.
  template <class Call>
  auto Change(Call call) const -> decltype(call()) {
    return Ask([&]() -> decltype(call()) {
      if (full()) return absl::ResourceExhaustedError("the disk is full");
      return call();
    });
  }

  absl::Status DoSet(const std::string& key, std::string value,
                     const CallTime&) override {
    return Change([&] { return target_.Set(key, value); });
  }
  absl::Status DoSetLease(const std::string& key, std::string value,
                          absl::Duration lifetime, const CallTime&) override {
    return Change([&] { return target_.SetLease(key, value, lifetime); });
  }
  async::Future<std::vector<std::string>> DoWhenChanged(
      std::vector<store::WatchedKey> keys) override {
    auto change = watches_->Start(std::move(keys));
    // The caller may block its thread until then.
    while (!change.ready() && hooks_.on_wait != nullptr && hooks_.on_wait()) {
    }
    return change;
  }
  absl::StatusOr<std::string> DoGet(const std::string& key,
                                    const CallTime&) override {
    if (hooks_.on_read != nullptr) hooks_.on_read(key);
    return Ask([&] { return target_.Get(key, absl::ZeroDuration()); });
  }
  absl::StatusOr<int64_t> DoAdd(const std::string& key, int64_t delta,
                                const CallTime&) override {
    return Change([&] { return target_.Add(key, delta); });
  }
  absl::StatusOr<int64_t> DoAppend(const std::string& key, std::string suffix,
                                   const CallTime&) override {
    return Change([&] { return target_.Append(key, suffix); });
  }
  absl::StatusOr<store::CompareAndSetResult> DoCompareAndSet(
      const std::string& key, std::string expected, std::string desired,
      const CallTime&) override {
    return Change(
        [&] { return target_.CompareAndSet(key, expected, desired); });
  }
  absl::Status DoWait(std::span<const std::string> keys,
                      const CallTime&) override {
    absl::Status status;
    do {
      status = Ask([&] { return target_.Wait(keys, absl::ZeroDuration()); });
    } while (absl::IsDeadlineExceeded(status) && hooks_.on_wait != nullptr &&
             hooks_.on_wait());
    return status;
  }
  absl::StatusOr<bool> DoCheck(std::span<const std::string> keys,
                               const CallTime&) override {
    if (hooks_.on_read != nullptr) {
      for (const std::string& key : keys) hooks_.on_read(key);
    }
    return Ask([&] { return target_.Check(keys); });
  }
  absl::StatusOr<bool> DoDelete(const std::string& key,
                                const CallTime&) override {
    return Change([&] { return target_.Delete(key); });
  }
  absl::StatusOr<int64_t> DoNumKeys(const CallTime&) override {
    return Ask([&] { return target_.NumKeys(); });
  }

  store::Store& target_;
  const Hooks hooks_;
  std::atomic<bool> partitioned_{false};
  std::atomic<bool> full_{false};
  const std::shared_ptr<SimulatedWatches> watches_ =
      std::make_shared<SimulatedWatches>(&target_);
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TESTING_SIMULATED_STORE_LINK_H_

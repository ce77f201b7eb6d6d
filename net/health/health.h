// Serving status of a server, as reported by grpc.health.v1.

#ifndef HAWSER_NET_HEALTH_HEALTH_H_
#define HAWSER_NET_HEALTH_HEALTH_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "async/mutex.h"

namespace hawser::net {

// One status for the whole server (service ""), all its services and the roles
// of its process in the job ("ps"). Initially not serving. Thread-safe.
class Health {
 public:
  // Receives changes of the status.
  class Observer {
   public:
    virtual ~Observer() = default;
    // Runs in the thread that made the change, without holding a lock, possibly
    // in several threads concurrently. Must not block.
    virtual void OnHealthChanged() = 0;
  };

  // Maximum number of observers.
  static constexpr size_t kMaxObservers = 64;

  explicit Health(std::vector<std::string> services)
      : services_(std::move(services)) {}

  // nullopt if the server has no such service.
  std::optional<bool> IsServing(std::string_view service) const;

  // Adds names that callers can query like services. Watchers of such a name
  // are notified with the next change.
  void AddRoles(const std::vector<std::string>& roles);

  void SetServing(bool serving);
  // Sets the status to not serving, permanently.
  void Close();
  bool closed() const;

  // Adds `observer`; returns false if there are kMaxObservers already.
  bool Observe(std::weak_ptr<Observer> observer);

 private:
  void NotifyObservers();

  mutable async::Mutex mutex_;
  std::vector<std::string> services_ ABSL_GUARDED_BY(mutex_);
  bool serving_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::weak_ptr<Observer>> observers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::net

#endif  // HAWSER_NET_HEALTH_HEALTH_H_

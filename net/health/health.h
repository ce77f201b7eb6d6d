// Serving status of a server, for callers of grpc.health.v1.

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

// One state for the server as a whole, called "", all its services, and what
// its process is for in its job ("ps"): not serving until told otherwise.
// Thread-safe.
class Health {
 public:
  // Gets to know of changes.
  class Observer {
   public:
    virtual ~Observer() = default;
    // Runs in the thread that made the change, no lock held; also in several
    // threads at once. Must not block.
    virtual void OnHealthChanged() = 0;
  };

  // How many observers there may be.
  static constexpr size_t kMaxObservers = 64;

  explicit Health(std::vector<std::string> services)
      : services_(std::move(services)) {}

  // Unset if the server has no such service.
  std::optional<bool> IsServing(std::string_view service) const;

  // Names that are asked for as services are. Those that watch one hear of it
  // with the next change.
  void AddRoles(const std::vector<std::string>& roles);

  void SetServing(bool serving);
  // Not serving, for good.
  void Close();
  bool closed() const;

  // False if there are too many; `observer` is told from now on otherwise.
  bool Observe(std::weak_ptr<Observer> observer);

 private:
  void TellObservers();

  mutable async::Mutex mutex_;
  std::vector<std::string> services_ ABSL_GUARDED_BY(mutex_);
  bool serving_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::weak_ptr<Observer>> observers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hawser::net

#endif  // HAWSER_NET_HEALTH_HEALTH_H_

#include "net/health/health.h"

#include <algorithm>
#include <utility>

namespace hawser::net {

std::optional<bool> Health::IsServing(std::string_view service) const {
  async::MutexLock lock(&mutex_);
  if (!service.empty() && std::find(services_.begin(), services_.end(),
                                    service) == services_.end()) {
    return std::nullopt;
  }
  return serving_;
}

void Health::AddRoles(const std::vector<std::string>& roles) {
  async::MutexLock lock(&mutex_);
  services_.insert(services_.end(), roles.begin(), roles.end());
}

void Health::SetServing(bool serving) {
  {
    async::MutexLock lock(&mutex_);
    if (closed_ || std::exchange(serving_, serving) == serving) return;
  }
  NotifyObservers();
}

void Health::Close() {
  {
    async::MutexLock lock(&mutex_);
    serving_ = false;
    if (std::exchange(closed_, true)) return;
  }
  NotifyObservers();
}

bool Health::closed() const {
  async::MutexLock lock(&mutex_);
  return closed_;
}

bool Health::Observe(std::weak_ptr<Observer> observer) {
  async::MutexLock lock(&mutex_);
  std::erase_if(observers_, [](const auto& weak) { return weak.expired(); });
  if (observers_.size() >= kMaxObservers) return false;
  observers_.push_back(std::move(observer));
  return true;
}

void Health::NotifyObservers() {
  std::vector<std::weak_ptr<Observer>> observers;
  {
    async::MutexLock lock(&mutex_);
    observers = observers_;
  }
  for (const auto& weak : observers) {
    if (auto observer = weak.lock()) observer->OnHealthChanged();
  }
}

}  // namespace hawser::net

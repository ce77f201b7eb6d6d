#include "ps/client/table_client.h"

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "async/mutex.h"

namespace hawser::ps {

void TableClient::Observe(const std::shared_ptr<LossObserver>& observer) {
  {
    const async::MutexLock lock(&mutex_);
    std::erase_if(observers_, [](const std::weak_ptr<LossObserver>& other) {
      return other.expired();
    });
    observers_.push_back(observer);
  }
  TellLost(*observer);
}

void TableClient::TellLost(LossObserver& observer) {
  std::set<std::string> lost;
  {
    const async::MutexLock lock(&mutex_);
    lost = lost_;
  }
  for (const std::string& worker : lost) observer.OnWorkerLost(worker);
}

void TableClient::OnWorkerLost(const std::string& worker) {
  {
    const async::MutexLock lock(&mutex_);
    lost_.insert(worker);
  }
  for (const auto& observer : Observers()) observer->OnWorkerLost(worker);
}

void TableClient::Stop() {
  for (const auto& observer : Observers()) observer->OnStop();
  host_.Revoke();
}

std::vector<std::shared_ptr<LossObserver>> TableClient::Observers() {
  std::vector<std::shared_ptr<LossObserver>> observers;
  const async::MutexLock lock(&mutex_);
  for (const std::weak_ptr<LossObserver>& weak : observers_) {
    if (std::shared_ptr<LossObserver> observer = weak.lock()) {
      observers.push_back(std::move(observer));
    }
  }
  return observers;
}

}  // namespace hawser::ps

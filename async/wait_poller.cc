#include "async/wait_poller.h"

#include <utility>

namespace hawser::async {
namespace {

class AllPoller final : public WaitPoller {
 public:
  explicit AllPoller(std::vector<std::shared_ptr<WaitPoller>> pollers)
      : pollers_(std::move(pollers)) {}

  void PollUntil(absl::FunctionRef<bool()> done) override {
    for (const std::shared_ptr<WaitPoller>& poller : pollers_) {
      if (done()) return;
      poller->PollUntil(done);
    }
  }

 private:
  const std::vector<std::shared_ptr<WaitPoller>> pollers_;
};

}  // namespace

std::shared_ptr<WaitPoller> PollerOfAll(
    std::vector<std::shared_ptr<WaitPoller>> pollers) {
  std::erase(pollers, nullptr);
  if (pollers.empty()) return nullptr;
  if (pollers.size() == 1) return std::move(pollers.front());
  return std::make_shared<AllPoller>(std::move(pollers));
}

}  // namespace hawser::async

#include "async/blocking_region.h"

#include <utility>

namespace hawser::async {
namespace {

thread_local constinit BlockingObserver* t_observer = nullptr;

}  // namespace

BlockingObserver* BlockingObserver::SetForThisThread(
    BlockingObserver* observer) {
  return std::exchange(t_observer, observer);
}

BlockingObserver* BlockingObserver::OfThisThread() { return t_observer; }

BlockingRegion::BlockingRegion()
    : observer_(std::exchange(t_observer, nullptr)) {
  if (observer_ != nullptr) observer_->OnBlock();
}

BlockingRegion::~BlockingRegion() {
  if (observer_ == nullptr) return;
  observer_->OnUnblock();
  t_observer = observer_;
}

}  // namespace hawser::async

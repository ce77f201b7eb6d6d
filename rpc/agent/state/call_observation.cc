#include "rpc/agent/state/call_observation.h"

#include <utility>

#include "async/exceptions.h"

namespace hawser::rpc {
namespace {

constexpr char kWho[] = "a call observer";

}  // namespace

std::shared_ptr<CallObservation> CallObservation::Begin(
    const CallObservers& observers, const CallStart& start) {
  if (observers.empty()) return nullptr;
  std::vector<std::unique_ptr<CallObserver::Call>> calls;
  for (const std::shared_ptr<CallObserver>& observer : observers) {
    async::LogExceptions(kWho, [&] {
      if (auto call = observer->Begin(start)) calls.push_back(std::move(call));
    });
  }
  return std::make_shared<CallObservation>(std::move(calls));
}

void CallObservation::End(const absl::Status& status) {
  if (ended_.exchange(true, std::memory_order_acq_rel)) return;
  const CallEnd end{
      .status = status,
      .request_bytes = request_bytes_.load(std::memory_order_relaxed),
      .reply_bytes = reply_bytes_.load(std::memory_order_relaxed)};
  for (const auto& call : calls_) {
    async::LogExceptions(kWho, [&] { call->End(end); });
  }
}

}  // namespace hawser::rpc

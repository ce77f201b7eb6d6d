#include "async/executor.h"

#include <utility>

namespace hawser::async {

void InlineExecutor::Post(absl::AnyInvocable<void() &&> closure) {
  std::move(closure)();
}

}  // namespace hawser::async

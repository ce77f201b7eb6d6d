#include "async/join.h"

#include <vector>

#include "async/future.h"

namespace hawser::async {

template Future<void> JoinAll(std::vector<Future<void>> futures);

}  // namespace hawser::async

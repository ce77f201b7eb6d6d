#include "async/thrown.h"

#include <cxxabi.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace hawser::async {

absl::Status ThrownError(std::string_view who) {
  const auto error = [who](absl::string_view what) {
    return absl::InternalError(absl::StrCat(
        absl::string_view(who.data(), who.size()), " threw ", what));
  };
#ifdef __cpp_exceptions
  try {
    throw;
  } catch (const abi::__forced_unwind&) {
    // The end of the thread, which may not be stopped.
    throw;
  } catch (const std::exception& exception) {
    return error(exception.what());
  } catch (...) {
  }
#endif
  return error("something that is no std::exception");
}

void TellOfThrown(std::string_view who) {
  using Clock = std::chrono::steady_clock;
  const absl::Status error = ThrownError(who);
  static std::atomic<Clock::rep> next{
      Clock::time_point::min().time_since_epoch().count()};
  static std::atomic<uint64_t> untold{0};
  const Clock::time_point now = Clock::now();
  Clock::rep expected = next.load(std::memory_order_relaxed);
  if (now.time_since_epoch().count() < expected ||
      !next.compare_exchange_strong(
          expected,
          (now + std::chrono::minutes(1)).time_since_epoch().count())) {
    untold.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  std::fprintf(stderr,
               "hawser: %s, with nobody to tell it to (%llu more before)\n",
               std::string(error.message()).c_str(),
               static_cast<unsigned long long>(untold.exchange(0)));
}

}  // namespace hawser::async

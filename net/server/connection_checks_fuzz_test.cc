// Fuzz test: sequences of observations of connections, of which clients choose
// the numbers, and descriptions of sockets as arbitrary text.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "async/check.h"
#include "bazel/fuzz/fuzz_input.h"
#include "net/server/misuse_detector.h"
#include "net/server/open_calls.h"

namespace hawser::net {
namespace {

constexpr MisuseDetector::Limits kLimits = {
    .max_calls_per_connection = 4,
    .memory_watermark_bytes = size_t{64} << 20,
    .max_message_bytes = int64_t{1} << 20};
constexpr int64_t kMaxSeenCalls =
    MisuseDetector::kSeenCalls * kLimits.max_calls_per_connection;
constexpr size_t kNumConnections = 4;

// Numbers of one connection, which mostly grow.
struct Counters {
  int64_t open_calls = 0;
  int64_t messages = 0;
  int64_t bytes = 0;

  void Change(fuzz::FuzzInput& input) {
    open_calls = static_cast<int64_t>(input.Below(8));
    // The port was used again.
    if (input.Below(16) == 15) messages = bytes = 0;
    messages += input.Byte();
    bytes += static_cast<int64_t>(input.Byte()) << input.Below(24);
  }
};

size_t NumFound(const std::vector<MisuseDetector::Finding>& findings,
                const ConnectionKey& connection) {
  return static_cast<size_t>(std::count_if(
      findings.begin(), findings.end(),
      [&](const auto& finding) { return finding.connection == connection; }));
}

void Observe(fuzz::FuzzInput& input) {
  MisuseDetector detector(kLimits);
  std::vector<Counters> counters(kNumConnections);
  size_t resident_bytes = 0;
  while (!input.empty()) {
    std::vector<MisuseDetector::Use> uses;
    const size_t known = input.Below(1 << kNumConnections);
    size_t num_above = 0;
    for (size_t i = 0; i < kNumConnections; ++i) {
      if ((known >> i & 1) == 0) continue;
      counters[i].Change(input);
      uses.push_back({.calls = {.connection = std::string(1, 'a' + i),
                                .open_calls = counters[i].open_calls,
                                .messages = counters[i].messages},
                      .bytes = counters[i].bytes});
      if (counters[i].open_calls > kMaxSeenCalls) {
        ++num_above;
      }
    }
    resident_bytes = static_cast<size_t>(input.Byte()) << 20;
    const std::vector<MisuseDetector::Finding> findings =
        detector.Check(uses, resident_bytes);
    // All above the limit, others for their bytes, and nobody twice.
    HAWSER_CHECK(findings.size() >= num_above);
    HAWSER_CHECK(findings.size() <= uses.size());
    for (const MisuseDetector::Use& use : uses) {
      const size_t found = NumFound(findings, use.calls.connection);
      HAWSER_CHECK(found <= 1);
      HAWSER_CHECK(found == 1 || use.calls.open_calls <= kMaxSeenCalls);
    }
    for (const MisuseDetector::Finding& finding : findings) {
      HAWSER_CHECK(std::any_of(uses.begin(), uses.end(), [&](const auto& use) {
        return use.calls.connection == finding.connection;
      }));
    }
  }
}

void Parse(fuzz::FuzzInput& input) {
  ConnectionCalls calls;
  if (!internal::ParseSocket(std::string(input.Take(4096)), calls)) return;
  // It has the port at least.
  HAWSER_CHECK(calls.connection.size() >= 2);
}

}  // namespace
}  // namespace hawser::net

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hawser::fuzz::FuzzInput input(data, size);
  if (input.Bool()) {
    hawser::net::Observe(input);
  } else {
    hawser::net::Parse(input);
  }
  return 0;
}

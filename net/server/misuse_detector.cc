#include "net/server/misuse_detector.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hawser::net {
namespace {

// The connection with the most bytes that complete no messages, if more than
// `bytes`.
struct Heaviest {
  void Add(const MisuseDetector::Use& candidate, int64_t unexplained) {
    if (unexplained <= bytes) return;
    use = &candidate;
    bytes = unexplained;
  }

  const MisuseDetector::Use* use = nullptr;
  int64_t bytes = 0;
};

}  // namespace

int64_t MisuseDetector::BytesBeyond(int64_t messages, int64_t bytes) const {
  const int64_t longest = std::max<int64_t>(limits_.max_message_bytes, 1);
  return bytes / longest < messages ? 0 : bytes - messages * longest;
}

std::optional<MisuseDetector::Finding> MisuseDetector::CheckCalls(
    const ConnectionCalls& calls) const {
  if (calls.open_calls <= kSeenCalls * limits_.max_calls_per_connection) {
    return std::nullopt;
  }
  return Finding{calls.connection,
                 absl::StrCat("it has ", calls.open_calls,
                              " calls open, and max_calls_per_connection is ",
                              limits_.max_calls_per_connection)};
}

bool MisuseDetector::has_suspect() const {
  return std::any_of(past_.begin(), past_.end(), [](const auto& past) {
    return past.second.unexplained >= kSuspiciousBytes;
  });
}

std::vector<MisuseDetector::Finding> MisuseDetector::Check(
    const std::vector<Use>& uses, size_t resident_bytes) {
  std::vector<Finding> findings;
  absl::flat_hash_map<ConnectionKey, Past> now;
  Heaviest heaviest{.bytes = kUnexplainedBytes - 1};
  Heaviest heaviest_new{.bytes = kUnexplainedFirstBytes - 1};
  size_t received = 0;
  for (const Use& use : uses) {
    const ConnectionCalls& calls = use.calls;
    const auto found = past_.find(calls.connection);
    Past past = found == past_.end() ? Past() : found->second;
    // A new connection from the same port.
    if (use.bytes < past.bytes || calls.messages < past.messages) past = Past();
    const int64_t bytes = use.bytes - past.bytes;
    received += static_cast<size_t>(bytes);
    const int64_t messages = calls.messages - past.messages;
    const int64_t unexplained =
        messages == 0
            ? past.unexplained + bytes
            : std::max<int64_t>(0, bytes - kBytesPerMessage * messages);
    const int64_t unfinished =
        messages == 0 ? past.unfinished + bytes : BytesBeyond(messages, bytes);
    now[calls.connection] = {use.bytes, calls.messages, unexplained,
                             unfinished};
    if (std::optional<Finding> finding = CheckCalls(calls)) {
      findings.push_back(*std::move(finding));
    } else if (unfinished > 2 * limits_.max_message_bytes + kMaxOtherBytes) {
      findings.push_back(
          {calls.connection, absl::StrCat("it has sent ", unfinished,
                                          " bytes that complete no messages")});
    } else {
      heaviest.Add(use, unexplained);
      if (calls.messages == 0) heaviest_new.Add(use, unexplained);
    }
  }
  heavy_connection_ended_ =
      std::any_of(past_.begin(), past_.end(), [&now](const auto& past) {
        return past.second.unexplained >= kUnexplainedBytes &&
               !now.contains(past.first);
      });
  past_ = std::move(now);
  const size_t growth =
      resident_bytes - std::min(resident_bytes, resident_bytes_);
  const bool amplified =
      growth >= kAmplification * received &&
      resident_bytes > limits_.memory_watermark_bytes / kAmplifiedFraction;
  const bool grows =
      growth >= kGrowthBytes &&
      (amplified || resident_bytes > limits_.memory_watermark_bytes);
  resident_bytes_ = resident_bytes;
  if (heaviest.use == nullptr && amplified) heaviest = heaviest_new;
  if (grows && heaviest.use != nullptr) {
    findings.push_back(
        {heaviest.use->calls.connection,
         absl::StrCat("the process has grown by ", growth, " bytes to ",
                      resident_bytes, ", memory_watermark_bytes is ",
                      limits_.memory_watermark_bytes, ", and it has sent ",
                      heaviest.bytes, " bytes that complete no messages")});
  }
  return findings;
}

}  // namespace hawser::net

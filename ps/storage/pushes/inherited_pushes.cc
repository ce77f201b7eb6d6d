#include "ps/storage/pushes/inherited_pushes.h"

#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ps/storage/key_hash.h"

namespace hawser::ps {

void InheritedPushes::Add(Range range) {
  if (range.count > 0 && !range.clients.empty()) {
    ranges_.push_back(std::move(range));
  }
}

absl::StatusOr<KeyBatch> InheritedPushes::WithoutApplied(
    const KeyBatch& batch, rpc::Incarnation client, uint64_t sequence) {
  // Ranges of which some shards may contain the push.
  std::vector<const Range*> older;
  for (const Range& range : ranges_) {
    const auto window = range.clients.find(client);
    if (window == range.clients.end()) continue;
    if (window->second.Find(sequence) != PushWindow::State::kNew) {
      older.push_back(&range);
    }
  }
  if (older.empty()) return batch;
  positions_.clear();
  for (size_t i = 0; i < batch.count; ++i) {
    const auto shard = static_cast<int64_t>(
        SplitHash(HashKey(batch.key(i)), static_cast<uint32_t>(num_shards_))
            .part);
    bool applied = false;
    for (const Range* range : older) {
      if (shard < range->first || shard >= range->first + range->count) {
        continue;
      }
      if (range->clients.at(client).Find(sequence) ==
          PushWindow::State::kTooOld) {
        return absl::FailedPreconditionError(absl::StrCat(
            "push ", sequence, " was overtaken by ", PushWindow::kDepth,
            " later ones before the table was restored: whether it was applied "
            "is not known any more"));
      }
      applied = true;
    }
    if (!applied) positions_.push_back(batch.position(i));
  }
  return KeyBatch{batch.keys, positions_.size(), positions_.data()};
}

void InheritedPushes::Forget(rpc::Incarnation client) {
  for (Range& range : ranges_) range.clients.erase(client);
  std::erase_if(ranges_,
                [](const Range& range) { return range.clients.empty(); });
}

}  // namespace hawser::ps

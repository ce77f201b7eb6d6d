// Pushes that some rows of a partition contain from before the table was cut
// into other partitions.

#ifndef HAWSER_PS_STORAGE_PUSHES_INHERITED_PUSHES_H_
#define HAWSER_PS_STORAGE_PUSHES_INHERITED_PUSHES_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "ps/storage/key_batch.h"
#include "ps/storage/push_window.h"
#include "rpc/identity/worker_info.h"

namespace hawser::ps {

// A push is sent to all its keys again when its table was restored onto other
// servers. The rows of some keys may contain it, because the partition that
// held them when the snapshot was written had applied it, and those of others
// not: the pushes of each earlier partition are remembered for the shards that
// came from it.
//
// Thread-compatible.
class InheritedPushes {
 public:
  // The pushes of a partition of which the shards `first` to `first + count -
  // 1` are here now.
  struct Range {
    int64_t first = 0;
    int64_t count = 0;
    std::map<rpc::Incarnation, PushWindow> clients;
  };

  explicit InheritedPushes(int64_t num_shards) : num_shards_(num_shards) {}

  // Ranges may overlap: rows contain the pushes of all their ranges.
  void Add(Range range);

  // The keys of `batch` whose rows do not contain that push. Refers to `batch`
  // and to memory of this object, until the next call.
  //
  // kFailedPrecondition: it is so old that this is not known of some row.
  absl::StatusOr<KeyBatch> WithoutApplied(const KeyBatch& batch,
                                          rpc::Incarnation client,
                                          uint64_t sequence);

  // Drops a client that makes no more pushes.
  void Forget(rpc::Incarnation client);

  const std::vector<Range>& ranges() const { return ranges_; }

 private:
  const int64_t num_shards_;
  // None without clients.
  std::vector<Range> ranges_;
  // Of the last batch.
  std::vector<uint32_t> positions_;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_PUSHES_INHERITED_PUSHES_H_

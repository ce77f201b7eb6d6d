// Look-ups in tables that training differentiates.

#ifndef HAWSER_PS_EMBEDDING_H_
#define HAWSER_PS_EMBEDDING_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "ps/row_encoding.h"
#include "ps/table.h"
#include "tensor/tensor.h"

namespace hawser::ps {

enum class Pooling {
  // A row per key.
  kNone,
  // The sum of the rows of each bag, added by the servers.
  kSum,
  // Its mean.
  kMean,
};

struct EmbeddingOptions {
  Pooling pooling = Pooling::kNone;
  // Number of pushes of earlier backward passes that may be under way when a
  // look-up reads. 0: a look-up sees all updates of this worker, as in one
  // process. More: pushes overlap with the next steps, which may miss that many
  // updates of this worker. At most 4,096. For a synchronous table it has no
  // meaning: look-ups see the pushes of completed clocks.
  int max_pushes_under_way = 0;
  // Form in which rows and gradients travel.
  RowEncoding encoding = RowEncoding::kF32;
};

// A layer whose weights are the rows of a table:
//
//   ps::Embedding embedding(table, {.pooling = ps::Pooling::kSum});
//   ASSIGN_OR_RETURN(Tensor rows, embedding.Forward(keys));
//   ... loss = f(rows), backward, dense optimizer step ...
//   RETURN_IF_ERROR(embedding.Flush());
//
// A look-up is a node of the autograd graph. Once a backward pass, local or
// distributed, has the gradient of its result, the node pushes it to the table,
// whose servers update the rows by the table's rule. The pass does not wait for
// the push. In a distributed pass the node may be on any worker.
//
// Thread-safe. Copies share the pushes under way.
class Embedding {
 public:
  // Rows that a later Forward returns. Movable.
  class Prefetched;

  explicit Embedding(Table table, const EmbeddingOptions& options = {});

  const Table& table() const;

  // Returns the rows of `keys`. While the thread records, the result requires a
  // gradient, and missing rows are created; otherwise they are not.
  //
  //   keys    i64[...]; with pooling i64[bags..., n].
  //   result  f32[keys..., width]; with pooling f32[bags..., width].
  //
  // Errors of Table::Pull and PullSums, and that of an earlier push, once.
  absl::StatusOr<Tensor> Forward(const Tensor& keys);

  // Starts a look-up and returns at once. With the keys of the next batch, its
  // rows travel while the present step computes:
  //
  //   ASSIGN_OR_RETURN(auto next, embedding.Prefetch(first_keys));
  //   while (...) {
  //     ASSIGN_OR_RETURN(Tensor rows, embedding.Forward(std::move(next)));
  //     ASSIGN_OR_RETURN(next, embedding.Prefetch(next_keys));
  //     ... loss = f(rows), backward, dense optimizer step ...
  //   }
  //
  // The servers read the rows now. The rows miss the updates of all passes, of
  // this worker and of others, whose pushes the servers apply later: those of
  // the passes that run before Forward takes the rows, and up to
  // max_pushes_under_way of this worker's earlier ones. In the loop above, a
  // step misses the update of the step before it.
  //
  // Each Prefetched holds the memory of its keys and rows.
  absl::StatusOr<Prefetched> Prefetch(const Tensor& keys);

  // Returns the rows of a look-up that Prefetch began on this embedding, or a
  // copy of it, and waits for them if necessary. Otherwise as Forward(keys); it
  // waits for pushes as well. If the thread records now, but did not at
  // Prefetch, missing rows are created by the push.
  absl::StatusOr<Tensor> Forward(Prefetched prefetched);

  // The step of the training, as PushOptions::step, that the pushes for later
  // results of Forward send. Unset, as at first: they send none.
  void SetStep(std::optional<int64_t> step);

  // Waits for the pushes of the backward passes that have run; with a
  // synchronous table advance the clock before. Returns the error of a push,
  // once.
  absl::Status Flush();

 private:
  class State;
  class Node;

  // Waits for the rows and adds the node to the graph.
  absl::StatusOr<Tensor> Finish(Prefetched prefetched);

  std::shared_ptr<State> state_;
};

class Embedding::Prefetched {
 private:
  friend class Embedding;

  Prefetched(Tensor keys, async::Future<Tensor> rows)
      : keys_(std::move(keys)), rows_(std::move(rows)) {}

  // A copy, which the caller cannot change.
  Tensor keys_;
  // As the table returns them.
  async::Future<Tensor> rows_;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_EMBEDDING_H_

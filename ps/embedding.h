// Look-ups in tables that training differentiates.

#ifndef HAWSER_PS_EMBEDDING_H_
#define HAWSER_PS_EMBEDDING_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
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
  // updates of this worker. At most 4,096.
  int max_pushes_under_way = 0;
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

  // Waits for the pushes of the backward passes that have run. Returns the
  // error of a push, once.
  absl::Status Flush();

 private:
  class State;
  class Node;

  std::shared_ptr<State> state_;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_EMBEDDING_H_

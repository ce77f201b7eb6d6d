// Reductions of MPI with the arithmetic of the other backends.

#ifndef HAWSER_COLLECTIVES_MPI_REDUCTION_H_
#define HAWSER_COLLECTIVES_MPI_REDUCTION_H_

#include <mpi.h>

#include <cstddef>

#include "absl/status/statusor.h"
#include "collectives/reduce_op.h"

namespace hawser::collectives {

// An operation on elements of a dtype, as which MPI sees their bytes: it has
// neither f16 nor bf16, and its minimum drops a NaN. Averages are sums, which
// FinishAverage divides. For the thread that calls MPI.
class MpiReduction {
 public:
  // Makes the operations of all dtypes and operations at the first call; they
  // last as long as MPI.
  static absl::StatusOr<MpiReduction> Get(const Reduction& reduction);

  MPI_Op op() const { return op_; }
  MPI_Datatype type() const { return type_; }

 private:
  MpiReduction(MPI_Op op, MPI_Datatype type) : op_(op), type_(type) {}

  MPI_Op op_;
  MPI_Datatype type_;
};

// Divides sums by the number of ranks, if the operation is an average.
void FinishAverage(const Reduction& reduction, int size, std::byte* data,
                   size_t bytes);

}  // namespace hawser::collectives

#endif  // HAWSER_COLLECTIVES_MPI_REDUCTION_H_

// Description of a table with dynamic keys.

#ifndef HAWSER_PS_STORAGE_TABLE_SPEC_H_
#define HAWSER_PS_STORAGE_TABLE_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "optim/row_wise_adagrad.h"
#include "optim/rule_spec.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace hawser::ps {

// Distribution of the initial weights of a row. The weights depend only on the
// seed of the table, the key and the column: they are the same on any number of
// servers.
struct Initializer {
  enum class Kind {
    kConstant,  // `a`.
    kUniform,   // In [a, b).
    kNormal,    // Mean `a`, standard deviation `b`.
  };

  static Initializer Constant(double value) {
    return {Kind::kConstant, value, 0};
  }
  static Initializer Uniform(double low, double high) {
    return {Kind::kUniform, low, high};
  }
  static Initializer Normal(double mean, double stddev) {
    return {Kind::kNormal, mean, stddev};
  }

  Kind kind = Kind::kConstant;
  double a = 0;
  double b = 0;

  friend bool operator==(const Initializer&, const Initializer&) = default;
};

// A tensor of a dense table.
struct DenseTensor {
  std::string name = {};
  tensor::Shape shape = {};

  friend bool operator==(const DenseTensor&, const DenseTensor&) = default;
};

// A table that maps keys, any 64-bit numbers, to rows of `width` numbers. A row
// exists from the first pull or push of its key. Fixed when the table is
// created. A plain value.
struct TableSpec {
  // Letters, digits, '_', '-', '.' and '/', at most 200 characters.
  std::string name = {};
  // Weights per row: 1 to 65,536.
  int64_t width = 0;
  // Type in which weights are stored: f32, f16 or bf16. 16-bit weights are
  // updated in f32 and rounded stochastically: a gradient that is too small to
  // change a weight changes it with the right probability.
  tensor::DType dtype = tensor::DType::kF32;
  // How a push updates rows. The rule must support gradients of rows. Its state
  // is stored in f32 with each row; for a rule that counts updates, each row
  // has its own count.
  optim::RuleSpec rule = optim::RowWiseAdagrad({});
  Initializer initializer = {};
  uint64_t seed = 0;
  // The table is cut into virtual shards by the hash of the key, and these are
  // distributed over the servers: 1 to 65,536.
  int64_t num_shards = 1024;
  // Of a dense table (ps/dense_table.h), whose rows are chunks of these
  // tensors; empty for other tables. Its rule may be one that only updates
  // whole tensors, but must treat each element alone.
  std::vector<DenseTensor> tensors = {};

  friend bool operator==(const TableSpec&, const TableSpec&) = default;
};

// Returns `spec` with all options of its rule, in the rule's order: two
// descriptions of the same table become equal. kInvalidArgument: names the
// field that is out of range.
absl::StatusOr<TableSpec> NormalizeTableSpec(TableSpec spec);

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_TABLE_SPEC_H_

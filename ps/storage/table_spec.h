// Description of a table with dynamic keys.

#ifndef HAWSER_PS_STORAGE_TABLE_SPEC_H_
#define HAWSER_PS_STORAGE_TABLE_SPEC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "optim/row_wise_adagrad.h"
#include "optim/rule_spec.h"
#include "optim/schedule_spec.h"
#include "ps/storage/consistency.h"
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

// Options of the rows whose keys are from `first` to `last`, without sign,
// instead of those of the table: for example of the keys of one feature, if the
// upper bits of a key say of which feature it is. Unset options are the
// table's.
struct KeyRange {
  uint64_t first = 0;
  uint64_t last = 0;
  // The table's rule with other options, such as {"lr", 0.01}. Those that are
  // not set are the table's. The state of a row must have the same numbers.
  std::optional<optim::RuleSpec> rule = std::nullopt;
  std::optional<optim::ScheduleSpec> schedule = std::nullopt;
  std::optional<Initializer> initializer = std::nullopt;

  friend bool operator==(const KeyRange&, const KeyRange&) = default;
};

// A tensor of a dense table.
struct DenseTensor {
  std::string name = {};
  tensor::Shape shape = {};

  friend bool operator==(const DenseTensor&, const DenseTensor&) = default;
};

// Which keys of a table have rows, and for how long. By default each key has
// one from its first pull or push on.
//
// With any of these options only pushes create and remove rows, and pulls
// change nothing: they return the initial weights of a key without a row.
// Removal is incremental, by a few rows per push.
struct Retention {
  // A key gets its row with this push of it, 1 to 15; earlier ones are dropped
  // for the key. Pushes are counted by a FrequencySketch, which states its
  // error. The counts begin anew when a server restarts.
  int64_t admission_pushes = 1;
  // Pushes of keys without rows in which each count is halved once: 16 to 2^28
  // keys, over all servers. Takes 4 bytes each.
  int64_t admission_window = int64_t{1} << 22;
  // A row that was not pushed to for longer is removed; until then it reads as
  // its initial weights. 1 second to 10 years, to the second; the time in which
  // no server holds the row does not count. Infinite: rows stay.
  absl::Duration ttl = absl::InfiniteDuration();
  // Rows of the table, over all servers; each partition of a server takes its
  // share, at least one. At the limit, a new row replaces one that was not
  // pushed to lately. If the keys of the push have all rows of a partition, it
  // is dropped for its other keys. 0: a server refuses pushes at its own limit.
  int64_t max_rows = 0;

  // Whether an option is set.
  bool active() const {
    return admission_pushes != 1 || ttl != absl::InfiniteDuration() ||
           max_rows != 0;
  }

  friend bool operator==(const Retention&, const Retention&) = default;
};

// Where the rows of a table are.
struct TableStorage {
  enum class Kind {
    kMemory,
    // Rows beyond `rows_in_memory` are in a RocksDB database on each server,
    // which needs a disk for it (TableServiceOptions::disk). Only pushes create
    // rows: pulls return the initial weights of keys without one, and do not
    // bring rows to memory.
    kRocksDb,
  };

  static TableStorage RocksDb(int64_t rows_in_memory) {
    return {Kind::kRocksDb, rows_in_memory};
  }

  Kind kind = Kind::kMemory;
  // With kRocksDb, over all servers; each partition takes its share, at least
  // one row, and a push as many as it has keys.
  int64_t rows_in_memory = 0;

  friend bool operator==(const TableStorage&, const TableStorage&) = default;
};

// A table that maps keys, any 64-bit numbers, to rows of `width` numbers. Fixed
// when the table is created. A plain value.
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
  // has its own count. A rule of a program (optim::RegisterUpdateRule) must be
  // registered on the servers.
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
  Retention retention = {};
  // Other than kMemory without tensors.
  TableStorage storage = {};
  // Which pushes of other workers a pull sees.
  Consistency consistency = {};
  // Learning rates by step. The base is that of the push or, if it has none, of
  // the rule. The step is that of the push or, if it has none, the clock of its
  // worker; in an asynchronous table, the number of the row's earlier updates.
  optim::ScheduleSpec schedule = {};
  // At most 512, which do not overlap; of tables without tensors.
  std::vector<KeyRange> key_ranges = {};

  friend bool operator==(const TableSpec&, const TableSpec&) = default;
};

// Returns `spec` with all options of its rules and schedules, in a fixed order,
// and its key ranges by key: two descriptions of the same table become equal.
// The options of a rule that is not registered in this process are sorted, but
// not checked: the servers do that. kInvalidArgument: names the field that is
// out of range, and the key range.
absl::StatusOr<TableSpec> NormalizeTableSpec(TableSpec spec);

}  // namespace hawser::ps

#endif  // HAWSER_PS_STORAGE_TABLE_SPEC_H_

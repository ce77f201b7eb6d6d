#include "ps/dense_table.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/future.h"
#include "async/join.h"
#include "async/status_macros.h"
#include "ps/row_values.h"
#include "ps/storage/key_hash.h"
#include "ps/storage/table_spec.h"
#include "ps/table.h"
#include "ps/table_arguments.h"
#include "rpc/agent/agent.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

// Enough chunks to spread them evenly over servers and their partitions.
constexpr int64_t kMinChunks = 64;
// Elements of a chunk: 64 KiB, with gradient and state a part of a cache.
constexpr int64_t kMaxWidth = 16384;
constexpr int64_t kWidthUnit = 16;
// Elements of a request, 16 MiB, and number of requests at the same time.
constexpr int64_t kPieceElements = int64_t{4} << 20;
constexpr size_t kPiecesUnderWay = 64;
// Elements of a tensor that is sent in a part of its own.
constexpr int64_t kMinPartElements = 1024;

int64_t CeilDiv(int64_t value, int64_t by) { return (value + by - 1) / by; }

int64_t CountElements(const std::vector<DenseTensor>& tensors) {
  int64_t count = 0;
  for (const DenseTensor& tensor : tensors) {
    count += tensor.shape.num_elements();
  }
  return count;
}

// Elements of a chunk of tensors with so many elements.
int64_t WidthFor(int64_t elements) {
  return std::clamp(
      CeilDiv(CeilDiv(elements, kMinChunks), kWidthUnit) * kWidthUnit,
      kWidthUnit, kMaxWidth);
}

}  // namespace

class DenseTable::State {
 public:
  explicit State(Table of_chunks)
      : table(std::move(of_chunks)),
        elements(CountElements(table.spec().tensors)),
        chunks(CeilDiv(elements, table.spec().width)) {}

  const Table table;
  const int64_t elements;
  const int64_t chunks;

  // The chunks of a request.
  struct Piece {
    int64_t first;
    int64_t count;
  };

  bool has_one_piece() const { return chunks <= piece_chunks(); }

  Tensor Keys(Piece piece) const {
    Tensor keys = Tensor::Empty({piece.count}, {.dtype = tensor::DType::kI64});
    for (int64_t i = 0; i < piece.count; ++i) {
      keys.data<int64_t>()[i] =
          static_cast<int64_t>(KeyOfChunk(piece.first + i, chunks));
    }
    return keys;
  }
  // The part of the values of all chunks.
  RowValues Part(const RowValues& all, Piece piece) const {
    const int64_t width = table.spec().width;
    return RowValues::FromParts(
        all.Slice(piece.first * width, piece.count * width));
  }
  Tensor NewChunks() const {
    return Tensor::Empty({chunks, table.spec().width});
  }

  // Calls `send` for all pieces, a limited number at a time.
  template <class Send>
  async::Future<void> ForEachPiece(const Send& send) const;

  // Calls `pull`, which returns the chunks of a piece, for all pieces.
  template <class PullPiece>
  async::Future<std::vector<Tensor>> Collect(const PullPiece& pull) const;

  // The elements of all chunks, in the memory of `values`, except that those of
  // small tensors are copied. `name` is what they are in errors; with
  // `optional`, undefined ones are zero.
  absl::StatusOr<RowValues> Join(const std::vector<Tensor>& values,
                                 const char* name, bool optional) const;
  // The tensors in `all`, the chunks.
  std::vector<Tensor> Unpack(const Tensor& all) const;

 private:
  int64_t piece_chunks() const {
    return std::max<int64_t>(kPieceElements / table.spec().width, 1);
  }
};

template <class Send>
async::Future<void> DenseTable::State::ForEachPiece(const Send& send) const {
  const int64_t step = piece_chunks();
  // Each lane sends a piece once the one before is done.
  std::vector<async::Future<void>> lanes;
  size_t next = 0;
  for (int64_t first = 0; first < chunks; first += step) {
    const Piece piece = {first, std::min(step, chunks - first)};
    if (lanes.size() < kPiecesUnderWay) {
      lanes.push_back(send(piece));
      continue;
    }
    async::Future<void>& lane = lanes[next++ % kPiecesUnderWay];
    lane = std::move(lane).Then(
        [send, piece](const absl::Status& status) -> async::Future<void> {
          if (!status.ok()) return async::MakeReadyFuture<void>(status);
          return send(piece);
        });
  }
  return async::JoinAll(std::move(lanes));
}

template <class PullPiece>
async::Future<std::vector<Tensor>> DenseTable::State::Collect(
    const PullPiece& pull) const {
  if (has_one_piece()) {
    return pull(Piece{0, chunks})
        .Then([state = *this](const absl::StatusOr<Tensor>& all)
                  -> absl::StatusOr<std::vector<Tensor>> {
          RETURN_IF_ERROR(all);
          return state.Unpack(*all);
        });
  }
  const Tensor all = NewChunks();
  return ForEachPiece([all, pull](Piece piece) {
           return pull(piece).Then(
               [to = *all.Narrow(0, piece.first, piece.count)](
                   const absl::StatusOr<Tensor>& rows) {
                 if (!rows.ok()) return rows.status();
                 return Tensor(to).CopyFrom(*rows);
               });
         })
      .Then([all, state = *this](const absl::Status& status)
                -> absl::StatusOr<std::vector<Tensor>> {
        RETURN_IF_ERROR(status);
        return state.Unpack(all);
      });
}

absl::StatusOr<RowValues> DenseTable::State::Join(
    const std::vector<Tensor>& values, const char* name, bool optional) const {
  const std::vector<DenseTensor>& tensors = table.spec().tensors;
  if (values.size() != tensors.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("table \"", table.spec().name, "\" has ", tensors.size(),
                     " tensors; these are ", values.size(), " ", name));
  }
  std::vector<Tensor> parts;
  // Small ones, one after the other.
  std::vector<float> small;
  const auto end_small = [&] {
    if (small.empty()) return;
    parts.push_back(
        Tensor::FromVector(small, {static_cast<int64_t>(small.size())}));
    small.clear();
  };
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t count = tensors[i].shape.num_elements();
    if (values[i].defined() || !optional) {
      RETURN_IF_ERROR(CheckRows(
          values[i], tensors[i].shape,
          absl::StrCat("the ", name, " of \"", tensors[i].name, "\"")));
    }
    if (count >= kMinPartElements) {
      end_small();
      parts.push_back(values[i].defined() ? values[i] : Tensor::Zeros({count}));
      continue;
    }
    const size_t at = small.size();
    small.resize(at + static_cast<size_t>(count));
    if (!values[i].defined()) continue;
    ASSIGN_OR_RETURN(const Tensor dense, values[i].Detach().Contiguous());
    std::copy_n(dense.data<float>(), count, small.data() + at);
  }
  // Of the last chunk.
  const int64_t width = table.spec().width;
  small.resize(small.size() + static_cast<size_t>(chunks * width - elements));
  end_small();
  return RowValues::FromParts(std::move(parts)).Checked({chunks, width}, name);
}

std::vector<Tensor> DenseTable::State::Unpack(const Tensor& all) const {
  const Tensor flat = *all.View({all.num_elements()});
  std::vector<Tensor> tensors;
  int64_t offset = 0;
  for (const DenseTensor& tensor : table.spec().tensors) {
    const int64_t count = tensor.shape.num_elements();
    tensors.push_back(*flat.Narrow(0, offset, count)->View(tensor.shape));
    offset += count;
  }
  return tensors;
}

absl::StatusOr<DenseTable> DenseTable::FromTable(Table table) {
  const TableSpec& spec = table.spec();
  const int64_t elements = CountElements(spec.tensors);
  if (elements == 0 || spec.width != WidthFor(elements)) {
    return absl::InvalidArgumentError(
        absl::StrCat("table \"", spec.name,
                     "\" is not a dense one: create it with "
                     "ps::DenseTable"));
  }
  return DenseTable(std::make_shared<const State>(std::move(table)));
}

absl::StatusOr<DenseTable> DenseTable::Create(
    rpc::Agent& agent, const DenseTableSpec& description,
    std::vector<std::string> servers) {
  TableSpec spec = {.name = description.name,
                    .width = 1,
                    .dtype = description.dtype,
                    .rule = description.rule,
                    .tensors = description.tensors,
                    .consistency = description.consistency};
  // Checks the shapes.
  ASSIGN_OR_RETURN(spec, NormalizeTableSpec(std::move(spec)));
  const int64_t elements = CountElements(spec.tensors);
  if (elements == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table \"", spec.name, "\": its tensors have no elements"));
  }
  spec.width = WidthFor(elements);
  ASSIGN_OR_RETURN(Table table, Table::Create(agent, spec, std::move(servers)));
  return FromTable(std::move(table));
}

absl::StatusOr<DenseTable> DenseTable::Open(rpc::Agent& agent,
                                            const std::string& name,
                                            std::vector<std::string> servers) {
  ASSIGN_OR_RETURN(Table table, Table::Open(agent, name, std::move(servers)));
  return FromTable(std::move(table));
}

absl::StatusOr<DenseTable> DenseTable::Restore(
    rpc::Agent& agent, const std::string& name, const std::string& snapshot,
    std::vector<std::string> servers) {
  ASSIGN_OR_RETURN(Table table,
                   Table::Restore(agent, name, snapshot, std::move(servers)));
  return FromTable(std::move(table));
}

const std::vector<DenseTensor>& DenseTable::tensors() const {
  return state_->table.spec().tensors;
}

const Table& DenseTable::table() const { return state_->table; }

async::Future<std::vector<Tensor>> DenseTable::Pull() const {
  return state_->Collect([state = state_](State::Piece piece) {
    return state->table.Pull(state->Keys(piece), {.create_missing = false});
  });
}

async::Future<void> DenseTable::Push(const std::vector<Tensor>& gradients,
                                     const PushOptions& options) const {
  absl::StatusOr<RowValues> all =
      state_->Join(gradients, "gradients", /*optional=*/true);
  if (!all.ok()) return async::MakeReadyFuture<void>(all.status());
  return state_->ForEachPiece(
      [state = state_, all = *std::move(all), options](State::Piece piece) {
        return state->table.Push(state->Keys(piece), state->Part(all, piece),
                                 options);
      });
}

async::Future<std::vector<Tensor>> DenseTable::PushPull(
    const std::vector<Tensor>& gradients, const PushOptions& options) const {
  absl::StatusOr<RowValues> all =
      state_->Join(gradients, "gradients", /*optional=*/true);
  if (!all.ok()) {
    return async::MakeReadyFuture<std::vector<Tensor>>(all.status());
  }
  return state_->Collect(
      [state = state_, all = *std::move(all), options](State::Piece piece) {
        return state->table.PushPull(state->Keys(piece),
                                     state->Part(all, piece), options);
      });
}

async::Future<void> DenseTable::Assign(const std::vector<Tensor>& weights,
                                       const AssignOptions& options) const {
  absl::StatusOr<RowValues> all =
      state_->Join(weights, "weights", /*optional=*/false);
  if (!all.ok()) return async::MakeReadyFuture<void>(all.status());
  return state_->ForEachPiece(
      [state = state_, all = *std::move(all), options](State::Piece piece) {
        return state->table.Assign(state->Keys(piece), state->Part(all, piece),
                                   options);
      });
}

}  // namespace hawser::ps

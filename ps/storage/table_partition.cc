#include "ps/storage/table_partition.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "optim/update_rule.h"
#include "ps/storage/initial_row.h"
#include "ps/storage/key_map.h"
#include "ps/storage/prefetch.h"
#include "ps/storage/push_window.h"
#include "ps/storage/row_codec.h"
#include "ps/storage/row_layout.h"
#include "ps/storage/table_format.h"
#include "rpc/identity/worker_info.h"
#include "tensor/dtype.h"

namespace hawser::ps {
namespace {

// Copies `count` rows to their positions in `weights`. A size that the compiler
// knows needs no call and no branches.
template <size_t kBytes>
void CopyRows(const std::byte* const* rows, const uint32_t* positions,
              size_t count, std::byte* weights) {
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(weights + positions[i] * kBytes, rows[i], kBytes);
  }
}

// Of rows that may be created while a copy is prepared.
constexpr size_t kMoreBytes = size_t{256} << 10;

using RowCopier = void (*)(const std::byte* const* rows,
                           const uint32_t* positions, size_t count,
                           std::byte* weights);

// Returns null for other sizes.
RowCopier FixedRowCopier(size_t bytes) {
  switch (bytes) {
    case 32:
      return CopyRows<32>;
    case 64:
      return CopyRows<64>;
    case 128:
      return CopyRows<128>;
    case 256:
      return CopyRows<256>;
    default:
      return nullptr;
  }
}

}  // namespace

TablePartition::TablePartition(std::shared_ptr<const TableFormat> format,
                               int64_t max_rows)
    : format_(std::move(format)),
      max_rows_(static_cast<size_t>(max_rows)),
      slots_(static_cast<uint32_t>(format_->spec().num_shards)),
      slab_(format_->layout().bytes()) {}

void TablePartition::Hash(const KeyBatch& batch, size_t begin,
                          Group& group) const {
  group.size = std::min(kGroup, batch.count - begin);
  for (size_t i = 0; i < group.size; ++i) {
    group.positions[i] = batch.positions == nullptr
                             ? static_cast<uint32_t>(begin + i)
                             : batch.positions[begin + i];
    group.keys[i] = batch.keys[group.positions[i]];
    group.hashes[i] = slots_.Hash(group.keys[i]);
    slots_.Prefetch(group.hashes[i]);
  }
}

size_t TablePartition::CountMissing(const KeyBatch& batch) const {
  size_t missing = 0;
  for (size_t i = 0; i < batch.count; ++i) {
    const uint64_t key =
        batch.keys[batch.positions == nullptr ? i : batch.positions[i]];
    missing += slots_.Find(key, slots_.Hash(key)) == KeyMap::kNoSlot ? 1 : 0;
  }
  return missing;
}

absl::Status TablePartition::Reserve(const KeyBatch& batch) {
  // Room for rows that exist already costs little, unless rows are wide.
  size_t count = batch.count;
  if (format_->layout().bytes() > kMaxPrefetchedBytes ||
      slots_.size() + count > max_rows_) {
    count = CountMissing(batch);
  }
  if (slots_.size() + count > max_rows_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "table \"", format_->spec().name, "\": a partition of this server has ",
        slots_.size(), " of at most ", max_rows_,
        " rows: use more servers or a higher limit"));
  }
  RETURN_IF_ERROR(slots_.Reserve(count));
  return slab_.Reserve(count);
}

void TablePartition::FindRows(const Access& access, Group& group) {
  const size_t row_bytes = std::min(access.row_bytes, kMaxPrefetchedBytes);
  const size_t gradient_bytes =
      std::min(format_->layout().width() * sizeof(float), kMaxPrefetchedBytes);
  for (size_t i = 0; i < group.size; ++i) {
    const uint32_t slot = slots_.Find(group.keys[i], group.hashes[i]);
    if (slot != KeyMap::kNoSlot) {
      group.rows[i] = slab_.Row(slot);
      Prefetch(group.rows[i], row_bytes);
    } else if (access.missing == MissingRows::kKeep) {
      group.rows[i] = nullptr;
    } else {
      group.rows[i] = CreateRow(group.keys[i], group.hashes[i]);
    }
    if (access.gradients != nullptr) {
      Prefetch(
          access.gradients + group.positions[i] * format_->layout().width(),
          gradient_bytes);
    }
  }
}

template <class Visit>
void TablePartition::VisitRows(const KeyBatch& batch, const Access& access,
                               const Visit& visit) {
  // Three groups are under way: while one is visited, the rows of the next and
  // the buckets of the one after it are being loaded.
  Group groups[3];
  const size_t count = (batch.count + kGroup - 1) / kGroup;
  for (size_t step = 0; step < count + 2; ++step) {
    if (step < count) Hash(batch, step * kGroup, groups[step % 3]);
    if (step >= 1 && step <= count) FindRows(access, groups[(step - 1) % 3]);
    if (step >= 2) visit(groups[(step - 2) % 3]);
  }
}

std::byte* TablePartition::CreateRow(uint64_t key, uint64_t hash) {
  const RowLayout& layout = format_->layout();
  const uint32_t slot = slab_.Allocate();
  slots_.Insert(key, hash, slot);
  std::byte* const row = slab_.Row(slot);
  ResetState(row);
  const TableSpec& spec = format_->spec();
  if (layout.dtype() == tensor::DType::kF32) {
    WriteInitialRow(spec.initializer, spec.seed, key,
                    {reinterpret_cast<float*>(row), layout.width()});
  } else {
    std::vector<float> weights(layout.width());
    WriteInitialRow(spec.initializer, spec.seed, key, weights);
    WriteWeights(layout, weights.data(), key, row);
  }
  return row;
}

void TablePartition::ResetState(std::byte* row) const {
  const RowLayout& layout = format_->layout();
  layout.set_step(row, 0);
  for (size_t i = 0; i < layout.num_slots(); ++i) {
    std::fill_n(layout.slot(row, i), layout.slot_width(i),
                static_cast<float>(format_->rule().slots()[i].initial));
  }
}

absl::Status TablePartition::Pull(const KeyBatch& batch, MissingRows missing,
                                  float* rows) {
  const RowLayout& layout = format_->layout();
  const RowCopier copy_fixed =
      layout.dtype() == tensor::DType::kF32 && missing == MissingRows::kCreate
          ? FixedRowCopier(layout.weight_bytes())
          : nullptr;
  const async::MutexLock lock(&mutex_);
  if (missing == MissingRows::kCreate) RETURN_IF_ERROR(Reserve(batch));
  VisitRows(batch, {missing, layout.weight_bytes()}, [&](const Group& group) {
    if (copy_fixed != nullptr) {
      copy_fixed(group.rows, group.positions, group.size,
                 reinterpret_cast<std::byte*>(rows));
    } else {
      CopyWeights(group, rows);
    }
  });
  return absl::OkStatus();
}

void TablePartition::CopyWeights(const Group& group, float* rows) const {
  const RowLayout& layout = format_->layout();
  const TableSpec& spec = format_->spec();
  for (size_t i = 0; i < group.size; ++i) {
    float* const weights = rows + group.positions[i] * layout.width();
    if (group.rows[i] != nullptr) {
      ReadWeights(layout, group.rows[i], weights);
    } else {
      WriteInitialRow(spec.initializer, spec.seed, group.keys[i],
                      {weights, layout.width()});
    }
  }
}

absl::StatusOr<PushWindow*> TablePartition::WindowFor(const PushId& id) {
  if (pushes_.Touch(id.client) == nullptr) {
    pushes_.Add(id.client, std::make_unique<PushWindow>());
  }
  PushWindow* const window = pushes_.Find(id.client)->get();
  switch (window->Find(id.sequence)) {
    case PushWindow::State::kApplied:
      return nullptr;
    case PushWindow::State::kTooOld:
      return absl::FailedPreconditionError(absl::StrCat(
          "push ", id.sequence, " was overtaken by ", PushWindow::kDepth,
          " later ones: whether it was applied is not known any more"));
    case PushWindow::State::kNew:
      break;
  }
  return window;
}

absl::StatusOr<PushOutcome> TablePartition::Push(
    const KeyBatch& batch, const float* gradients, double learning_rate,
    const std::optional<PushId>& id) {
  const bool wide = format_->layout().dtype() == tensor::DType::kF32;
  const async::MutexLock lock(&mutex_);
  PushWindow* window = nullptr;
  if (id.has_value()) {
    ASSIGN_OR_RETURN(window, WindowFor(*id));
    if (window == nullptr) return PushOutcome::kRepeated;
  }
  RETURN_IF_ERROR(Reserve(batch));
  VisitRows(batch, {MissingRows::kCreate, format_->layout().bytes(), gradients},
            [&](const Group& group) {
              if (wide) {
                Update(group, gradients, learning_rate);
              } else {
                UpdateNarrow(group, gradients, learning_rate);
              }
            });
  if (window != nullptr) window->Add(id->sequence);
  return PushOutcome::kApplied;
}

absl::StatusOr<PushOutcome> TablePartition::Assign(
    const KeyBatch& batch, const float* weights, ExistingRows existing,
    const std::optional<PushId>& id) {
  const RowLayout& layout = format_->layout();
  const async::MutexLock lock(&mutex_);
  PushWindow* window = nullptr;
  if (id.has_value()) {
    ASSIGN_OR_RETURN(window, WindowFor(*id));
    if (window == nullptr) return PushOutcome::kRepeated;
  }
  RETURN_IF_ERROR(Reserve(batch));
  for (size_t i = 0; i < batch.count; ++i) {
    const size_t position = batch.positions == nullptr ? i : batch.positions[i];
    const uint64_t key = batch.keys[position];
    const uint64_t hash = slots_.Hash(key);
    uint32_t slot = slots_.Find(key, hash);
    if (slot == KeyMap::kNoSlot) {
      slot = slab_.Allocate();
      slots_.Insert(key, hash, slot);
    } else if (existing == ExistingRows::kKeep) {
      continue;
    }
    std::byte* const row = slab_.Row(slot);
    ResetState(row);
    WriteWeights(layout, weights + position * layout.width(), key, row);
  }
  if (window != nullptr) window->Add(id->sequence);
  return PushOutcome::kApplied;
}

void TablePartition::Forget(rpc::Incarnation client) {
  const async::MutexLock lock(&mutex_);
  pushes_.Erase(client);
}

optim::UpdateSpan TablePartition::NextUpdate(std::byte* row) const {
  const RowLayout& layout = format_->layout();
  optim::UpdateSpan span;
  span.count = layout.width();
  span.parameter = row;
  for (size_t i = 0; i < layout.num_slots(); ++i) {
    span.slots[i] = layout.slot(row, i);
  }
  const uint32_t step = layout.step(row) + 1;
  layout.set_step(row, step);
  span.step = step;
  return span;
}

void TablePartition::Update(const Group& group, const float* gradients,
                            double learning_rate) const {
  optim::UpdateSpan spans[kGroup];
  for (size_t i = 0; i < group.size; ++i) {
    optim::UpdateSpan& span = spans[i];
    span = NextUpdate(group.rows[i]);
    span.gradient = gradients + group.positions[i] * span.count;
    span.learning_rate = learning_rate;
  }
  format_->rule().Update(std::span(spans, group.size));
}

void TablePartition::UpdateNarrow(const Group& group, const float* gradients,
                                  double learning_rate) const {
  const RowLayout& layout = format_->layout();
  std::vector<float> weights(layout.width());
  for (size_t i = 0; i < group.size; ++i) {
    std::byte* const row = group.rows[i];
    ReadWeights(layout, row, weights.data());
    optim::UpdateSpan span = NextUpdate(row);
    span.parameter = weights.data();
    span.gradient = gradients + group.positions[i] * span.count;
    span.learning_rate = learning_rate;
    format_->rule().Update({&span, 1});
    WriteWeights(layout, weights.data(), group.keys[i], row);
  }
}

void PartitionCopy::Reserve(size_t count, size_t row_bytes) {
  if (keys.size() >= count) return;
  slots.resize(count * row_bytes);
  keys.resize(count);
  used.resize(count);
}

// Steps:
//   1. Make room, so that the memory is there in the next step.
//   2. Under the lock, copy the rows as they lie, and the keys by slot.
//   3. Put keys and rows together.
std::vector<std::pair<rpc::Incarnation, PushWindow>> TablePartition::Export(
    PartitionCopy& copy) const {
  const size_t row_bytes = format_->layout().bytes();
  size_t end = 0;
  {
    const async::MutexLock lock(&mutex_);
    end = slab_.end();
  }
  // Some more, for rows that are created meanwhile.
  copy.Reserve(end + end / 8 + kMoreBytes / row_bytes, row_bytes);
  std::fill(copy.used.begin(), copy.used.end(), uint8_t{0});
  std::vector<std::pair<rpc::Incarnation, PushWindow>> pushes;
  size_t count = 0;
  {
    const async::MutexLock lock(&mutex_);
    end = slab_.end();
    copy.Reserve(end, row_bytes);
    slab_.CopyTo(copy.slots.data());
    slots_.ForEach([&](uint64_t key, uint32_t slot) {
      copy.keys[slot] = key;
      copy.used[slot] = 1;
    });
    count = slots_.size();
    pushes_.ForEach([&](rpc::Incarnation client, const auto& window) {
      pushes.emplace_back(client, *window);
    });
  }
  copy.rows.resize(count * exported_row_bytes());
  std::byte* next = copy.rows.data();
  for (size_t slot = 0; slot < end; ++slot) {
    if (copy.used[slot] == 0) continue;
    std::memcpy(next, &copy.keys[slot], sizeof(uint64_t));
    std::memcpy(next + sizeof(uint64_t), &copy.slots[slot * row_bytes],
                row_bytes);
    next += sizeof(uint64_t) + row_bytes;
  }
  return pushes;
}

absl::Status TablePartition::Import(std::span<const std::byte> rows) {
  const size_t row_bytes = format_->layout().bytes();
  const size_t count = rows.size() / exported_row_bytes();
  const async::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(slots_.Reserve(count));
  RETURN_IF_ERROR(slab_.Reserve(count));
  const std::byte* next = rows.data();
  for (size_t i = 0; i < count; ++i) {
    uint64_t key = 0;
    std::memcpy(&key, next, sizeof(key));
    const uint64_t hash = slots_.Hash(key);
    uint32_t slot = slots_.Find(key, hash);
    if (slot == KeyMap::kNoSlot) {
      slot = slab_.Allocate();
      slots_.Insert(key, hash, slot);
    }
    std::memcpy(slab_.Row(slot), next + sizeof(key), row_bytes);
    next += sizeof(key) + row_bytes;
  }
  return absl::OkStatus();
}

void TablePartition::ImportPushes(rpc::Incarnation client,
                                  const PushWindow& pushes) {
  const async::MutexLock lock(&mutex_);
  pushes_.Erase(client);
  pushes_.Add(client, std::make_unique<PushWindow>(pushes));
}

void TablePartition::ForEachRow(
    absl::FunctionRef<void(uint64_t key, const std::byte* row)> visit) const {
  const async::MutexLock lock(&mutex_);
  slots_.ForEach([&visit, slab = &slab_](uint64_t key, uint32_t slot) {
    visit(key, slab->Row(slot));
  });
}

int64_t TablePartition::num_rows() const {
  const async::MutexLock lock(&mutex_);
  return static_cast<int64_t>(slots_.size());
}

size_t TablePartition::bytes() const {
  const async::MutexLock lock(&mutex_);
  return slots_.bytes() + slab_.bytes();
}

}  // namespace hawser::ps

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

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "async/yielding_mutex.h"
#include "ps/storage/disk/row_disk.h"
#include "ps/storage/disk/row_tier.h"
#include "ps/storage/key_batch.h"
#include "ps/storage/memory/copy_rows.h"
#include "ps/storage/prefetch.h"
#include "ps/storage/push_window.h"
#include "ps/storage/retention/retention_counts.h"
#include "ps/storage/retention/row_retention.h"
#include "ps/storage/retention/row_use.h"
#include "ps/storage/retention/table_time.h"
#include "ps/storage/row_codec.h"
#include "ps/storage/row_layout.h"
#include "ps/storage/rows/new_row.h"
#include "ps/storage/rows/push_rate.h"
#include "ps/storage/rows/row_options.h"
#include "ps/storage/table_format.h"
#include "ps/storage/table_spec.h"
#include "rpc/identity/worker_info.h"
#include "tensor/dtype.h"

namespace hawser::ps {
namespace {

// Up to this size, the lines of a reply may be in the cache of the core that
// read an earlier one.
constexpr size_t kMaxSmallReply = size_t{512} << 10;
// The processor loads the lines of narrower rows early enough by itself.
constexpr size_t kMinPrefetchedCopy = 128;

}  // namespace

TablePartition::TablePartition(std::shared_ptr<const TableFormat> format,
                               std::shared_ptr<const TableTime> time,
                               const PartitionShare& share, RowDisk* disk)
    : format_(std::move(format)),
      time_(std::move(time)),
      max_rows_(static_cast<size_t>(share.max_rows)),
      first_shard_(share.first_shard),
      num_shards_(share.num_shards),
      uses_format_(UsesFormat(*format_, disk)),
      rows_(format_),
      uses_(uses_format_ == nullptr ? nullptr
                                    : std::make_unique<RowStore>(uses_format_)),
      retention_(MakeRetention(share)),
      tier_(disk == nullptr ? nullptr
                            : std::make_unique<RowTier>(format_, *disk, share)),
      inherited_(format_->spec().num_shards) {}

size_t TablePartition::CountMissing(const KeyBatch& batch,
                                    const RowStore& rows) {
  size_t missing = 0;
  for (size_t i = 0; i < batch.count; ++i) {
    const uint64_t key = batch.key(i);
    missing += rows.Find(key, rows.Hash(key)) == nullptr ? 1 : 0;
  }
  return missing;
}

absl::Status TablePartition::Reserve(const KeyBatch& batch) {
  // Room for rows that exist already costs little, unless rows are wide.
  size_t count = batch.count;
  if (format_->layout().bytes() > kMaxPrefetchedBytes ||
      rows_.size() + count > max_rows_) {
    count = CountMissing(batch, rows_);
  }
  if (rows_.size() + count > max_rows_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "table \"", format_->spec().name, "\": a partition of this server has ",
        rows_.size(), " of at most ", max_rows_,
        " rows: use more servers or a higher limit"));
  }
  return rows_.Reserve(count);
}

template <class Visit>
void TablePartition::VisitRows(const KeyBatch& batch, const Access& access,
                               const Visit& visit) {
  // Groups that each step is ahead of the next one: what it prefetches arrives
  // meanwhile. Small groups, so that loads from memory and the copies of rows
  // take turns quickly and overlap.
  constexpr size_t kAhead = 2;
  constexpr size_t kNumGroups = 3 * kAhead + 1;
  Group groups[kNumGroups];
  const size_t count = (batch.count + kGroup - 1) / kGroup;
  for (size_t step = 0; step < count + 3 * kAhead; ++step) {
    // Those before the first have wrapped around, and are large.
    const auto before = [&](size_t ahead) -> Group* {
      const size_t index = step - ahead;
      return index < count ? &groups[index % kNumGroups] : nullptr;
    };
    if (Group* const group = before(0)) Hash(batch, step * kGroup, *group);
    if (Group* const group = before(kAhead)) FindRows(access, *group);
    if (Group* const group = before(2 * kAhead)) FindElsewhere(access, *group);
    if (Group* const group = before(3 * kAhead)) visit(*group);
  }
}

absl::Status TablePartition::Pull(const KeyBatch& batch, MissingRows missing,
                                  float* rows) {
  const RowLayout& layout = format_->layout();
  const auto copy = [&](uint64_t key, const std::byte* row, uint32_t position) {
    CopyWeights(key, row, rows + position * layout.width());
  };
  if (tier_ != nullptr) {
    return PullFromTier(batch, layout.weight_bytes(), copy);
  }
  if (retention_ != nullptr) missing = MissingRows::kKeep;
  const RowCopier copy_fixed =
      layout.dtype() == tensor::DType::kF32 && missing == MissingRows::kCreate
          ? RowCopierFor(layout.weight_bytes())
          : nullptr;
  const bool expire = format_->rows_expire();
  const int64_t now = expire ? time_->Now() : 0;
  const size_t row_bytes = expire ? layout.bytes() : layout.weight_bytes();
  const async::YieldingMutexLock lock(&mutex_);
  if (missing == MissingRows::kCreate) RETURN_IF_ERROR(Reserve(batch));
  Access access = {.missing = missing, .row_bytes = row_bytes};
  if (copy_fixed != nullptr && batch.count > 0) {
    access.copies_shared =
        batch.position(batch.count - 1) < kMaxSmallReply / row_bytes;
    if (access.copies_shared || row_bytes >= kMinPrefetchedCopy) {
      access.copies = reinterpret_cast<std::byte*>(rows);
    }
  }
  VisitRows(batch, access, [&](Group& group) {
    if (copy_fixed != nullptr) {
      copy_fixed(group.rows, group.positions, group.size,
                 reinterpret_cast<std::byte*>(rows));
      return;
    }
    if (expire) HideExpired(group, now);
    for (size_t i = 0; i < group.size; ++i) {
      copy(group.keys[i], group.rows[i], group.positions[i]);
    }
  });
  return absl::OkStatus();
}

absl::Status TablePartition::PullWholeRows(const KeyBatch& batch,
                                           MissingRows missing,
                                           std::byte* rows) {
  const size_t row_bytes = format_->layout().bytes();
  const auto copy = [&](uint64_t key, const std::byte* row, uint32_t position) {
    CopyWholeRow(key, row, rows + position * row_bytes);
  };
  if (tier_ != nullptr) return PullFromTier(batch, row_bytes, copy);
  if (retention_ != nullptr) missing = MissingRows::kKeep;
  const bool expire = format_->rows_expire();
  const int64_t now = expire ? time_->Now() : 0;
  const async::YieldingMutexLock lock(&mutex_);
  if (missing == MissingRows::kCreate) RETURN_IF_ERROR(Reserve(batch));
  VisitRows(batch, {missing, row_bytes}, [&](Group& group) {
    if (expire) HideExpired(group, now);
    for (size_t i = 0; i < group.size; ++i) {
      copy(group.keys[i], group.rows[i], group.positions[i]);
    }
  });
  return absl::OkStatus();
}

// A row on the disk is read without the lock: it is the one that there was when
// the lock was held, or a later one.
template <class Copy>
absl::Status TablePartition::PullFromTier(const KeyBatch& batch,
                                          size_t row_bytes, const Copy& copy) {
  std::vector<uint64_t> absent;
  std::vector<uint32_t> positions;
  const RowDisk* disk = nullptr;
  {
    const int64_t now = time_->Now();
    const async::YieldingMutexLock lock(&mutex_);
    disk = &tier_->disk();
    std::vector<uint8_t> has_no_use(uses_ == nullptr ? 0 : batch.count);
    for (size_t i = 0; i < has_no_use.size(); ++i) {
      has_no_use[i] = HasNoUse(batch.key(i), now) ? 1 : 0;
    }
    size_t begin = 0;
    VisitRows(batch, {MissingRows::kKeep, row_bytes}, [&](Group& group) {
      for (size_t i = 0; i < group.size; ++i) {
        if (!has_no_use.empty() && has_no_use[begin + i] != 0) {
          group.rows[i] = nullptr;
        } else if (group.rows[i] == nullptr) {
          absent.push_back(group.keys[i]);
          positions.push_back(group.positions[i]);
        }
        copy(group.keys[i], group.rows[i], group.positions[i]);
      }
      begin += group.size;
    });
  }
  return disk->Read(absent, [&](size_t i, const std::byte* row) {
    copy(absent[i], row, positions[i]);
  });
}

void TablePartition::HideExpired(Group& group, int64_t now) const {
  for (size_t i = 0; i < group.size; ++i) {
    const std::byte* const row = group.rows[i];
    if (row != nullptr && format_->HasExpired(row, now)) {
      group.rows[i] = nullptr;
    }
  }
}

void TablePartition::CopyWeights(uint64_t key, const std::byte* row,
                                 float* weights) const {
  if (row != nullptr) {
    ReadWeights(format_->layout(), row, weights);
  } else {
    WriteNewWeights(*format_, key, {weights, format_->layout().width()});
  }
}

void TablePartition::CopyWholeRow(uint64_t key, const std::byte* row,
                                  std::byte* copy) const {
  if (row != nullptr) {
    std::memcpy(copy, row, format_->layout().bytes());
  } else {
    WriteNewRow(*format_, key, copy);
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

absl::StatusOr<KeyBatch> TablePartition::Admit(const KeyBatch& batch,
                                               AdmittedRows rows,
                                               Admission admission) {
  KeyBatch admitted = batch;
  if (retention_ != nullptr) {
    ASSIGN_OR_RETURN(admitted, AdmitRetained(batch, rows, admission));
  }
  if (tier_ != nullptr) {
    RETURN_IF_ERROR(tier_->Load(admitted, time_->Now(), rows_));
  } else if (retention_ == nullptr) {
    RETURN_IF_ERROR(Reserve(batch));
  }
  return admitted;
}

absl::StatusOr<PushOutcome> TablePartition::Push(
    const KeyBatch& batch, const float* gradients, const PushRate& rate,
    const std::optional<PushId>& id, Admission admission) {
  const bool wide = format_->layout().dtype() == tensor::DType::kF32;
  RowRates rates(format_->options(), rate);
  const bool by_key =
      format_->options().has_ranges() || !rates.uniform().has_value();
  const double rate_of_all = rates.uniform().value_or(0);
  const async::YieldingMutexLock lock(&mutex_);
  PushWindow* window = nullptr;
  if (id.has_value()) {
    ASSIGN_OR_RETURN(window, WindowFor(*id));
    if (window == nullptr) return PushOutcome::kRepeated;
  }
  ASSIGN_OR_RETURN(const KeyBatch fresh, NotInherited(batch, id));
  ASSIGN_OR_RETURN(const KeyBatch admitted,
                   Admit(fresh, AdmittedRows::kFrequent, admission));
  const RowLayout& layout = format_->layout();
  const int64_t now = layout.has_use() ? time_->Now() : 0;
  for (size_t i = 0; uses_ != nullptr && i < admitted.count; ++i) {
    const uint64_t key = admitted.key(i);
    const std::byte* const use = uses_->Find(key, uses_->Hash(key));
    SetUse(key, uses_format_->layout().use(use).Pushed(now));
  }
  VisitRows(admitted,
            {.missing = MissingRows::kCreate,
             .row_bytes = layout.bytes(),
             .changes = true,
             .gradients = gradients},
            [&](const Group& group) {
              if (layout.has_use()) TouchRows(group, now);
              if (!wide) {
                UpdateNarrow(group, gradients, rates);
              } else if (by_key) {
                UpdateByKey(group, gradients, rates);
              } else {
                Update(group, gradients, rate_of_all);
              }
            });
  if (window != nullptr) window->Add(id->sequence);
  return PushOutcome::kApplied;
}

absl::StatusOr<PushOutcome> TablePartition::Assign(
    const KeyBatch& batch, const float* weights, ExistingRows existing,
    const std::optional<PushId>& id, Admission admission) {
  const RowLayout& layout = format_->layout();
  const async::YieldingMutexLock lock(&mutex_);
  PushWindow* window = nullptr;
  if (id.has_value()) {
    ASSIGN_OR_RETURN(window, WindowFor(*id));
    if (window == nullptr) return PushOutcome::kRepeated;
  }
  const bool replaces = existing == ExistingRows::kReplace;
  ASSIGN_OR_RETURN(const KeyBatch fresh, NotInherited(batch, id));
  ASSIGN_OR_RETURN(
      const KeyBatch admitted,
      Admit(fresh, replaces ? AdmittedRows::kAll : AdmittedRows::kMissing,
            admission));
  for (size_t i = 0; i < admitted.count; ++i) {
    const size_t position = admitted.position(i);
    const uint64_t key = admitted.keys[position];
    const uint64_t hash = rows_.Hash(key);
    const std::byte* const found = rows_.Find(key, hash);
    // With retention or a disk, the rows of admitted keys exist.
    bool keeps = !replaces && found != nullptr;
    if (tier_ != nullptr) keeps = !replaces && !tier_->WasCreated(key);
    if (keeps && retention_ == nullptr) continue;
    std::byte* const row = found == nullptr ? rows_.Insert(key, hash)
                                            : rows_.FindToChange(key, hash);
    WriteNewState(*format_, key, row);
    WriteWeights(layout, weights + position * layout.width(), key, row);
    layout.set_use(row, RowUse(time_->Now(), 1));
    if (uses_ != nullptr) SetUse(key, RowUse(time_->Now(), 1));
  }
  if (window != nullptr) window->Add(id->sequence);
  return PushOutcome::kApplied;
}

void TablePartition::Forget(rpc::Incarnation client) {
  const async::YieldingMutexLock lock(&mutex_);
  pushes_.Erase(client);
  inherited_.Forget(client);
}

int64_t TablePartition::num_rows() const {
  const async::YieldingMutexLock lock(&mutex_);
  return tier_ != nullptr && uses_ == nullptr
             ? tier_->num_rows()
             : static_cast<int64_t>(retained_rows().size());
}

size_t TablePartition::bytes() const {
  const async::YieldingMutexLock lock(&mutex_);
  return rows_.bytes() + (uses_ != nullptr ? uses_->bytes() : 0) +
         (retention_ != nullptr ? retention_->bytes() : 0);
}

RetentionCounts TablePartition::retention_counts() const {
  const async::YieldingMutexLock lock(&mutex_);
  return retention_ != nullptr ? retention_->counts() : RetentionCounts();
}

}  // namespace hawser::ps

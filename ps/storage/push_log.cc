#include "ps/storage/push_log.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "fs/unique_fd.h"
#include "proto/table_files.pb.h"
#include "ps/storage/record.h"
#include "ps/storage/rows/push_rate.h"
#include "ps/storage/snapshot/table_file.h"
#include "ps/storage/table_partition.h"
#include "ps/storage/worker_clocks.h"
#include "rpc/identity/worker_info.h"
#include "telemetry/duration_histogram.h"

namespace hawser::ps {
namespace {

constexpr char kMagic[] = "HWSRLOG1";

// Before the keys in the body of a push.
struct PushHeader {
  uint64_t client;
  uint64_t sequence;
  uint64_t join;
  int64_t clock;
  double learning_rate;
  int64_t step;
  int64_t time;
  uint64_t num_removed;
  uint64_t num_keys;
};
static_assert(sizeof(PushHeader) == 72);

PushRate RateOf(const PushHeader& header) {
  PushRate rate;
  if (!std::isnan(header.learning_rate)) {
    rate.learning_rate = header.learning_rate;
  }
  if (header.step >= 0) rate.step = header.step;
  return rate;
}

RecordKind RecordKindOf(PushKind kind) {
  switch (kind) {
    case PushKind::kUpdate:
      break;
    case PushKind::kAssign:
      return RecordKind::kAssign;
    case PushKind::kAssignMissing:
      return RecordKind::kAssignMissing;
  }
  return RecordKind::kPush;
}

std::optional<PushKind> PushKindOf(RecordKind kind) {
  switch (kind) {
    case RecordKind::kPush:
      return PushKind::kUpdate;
    case RecordKind::kAssign:
      return PushKind::kAssign;
    case RecordKind::kAssignMissing:
      return PushKind::kAssignMissing;
    default:
      return std::nullopt;
  }
}

absl::StatusOr<LoggedPush> ParsePush(const RecordReader& reader, PushKind kind,
                                     int64_t width) {
  const std::span<const std::byte> body = reader.body();
  PushHeader header;
  if (body.size() < sizeof(header))
    return reader.Damaged("a push is too short");
  std::memcpy(&header, body.data(), sizeof(header));
  size_t rest = body.size() - sizeof(header);
  if (header.num_removed > rest / sizeof(uint64_t)) {
    return reader.Damaged("a push has the wrong size");
  }
  rest -= header.num_removed * sizeof(uint64_t);
  const size_t key_bytes =
      sizeof(uint64_t) + static_cast<size_t>(width) * sizeof(float);
  if (rest % key_bytes != 0 || rest / key_bytes != header.num_keys) {
    return reader.Damaged("a push has the wrong size");
  }
  const std::byte* const removed = body.data() + sizeof(header);
  const std::byte* const keys = removed + header.num_removed * sizeof(uint64_t);
  const std::byte* const values = keys + header.num_keys * sizeof(uint64_t);
  // The buffer of a body is aligned, and so are its parts.
  return LoggedPush{
      {rpc::Incarnation{header.client}, header.sequence},
      RateOf(header),
      {reinterpret_cast<const uint64_t*>(keys), header.num_keys},
      {reinterpret_cast<const float*>(values),
       header.num_keys * static_cast<size_t>(width)},
      kind,
      header.time,
      {reinterpret_cast<const uint64_t*>(removed), header.num_removed},
      {header.join, header.clock}};
}

absl::Status ReplayRecord(const RecordReader& reader, RecordKind kind,
                          const TableFileInfo& info,
                          PushLog::Replayer& replayer) {
  if (const std::optional<PushKind> push_kind = PushKindOf(kind)) {
    ASSIGN_OR_RETURN(const LoggedPush push,
                     ParsePush(reader, *push_kind, info.spec.width));
    return replayer.Apply(info, push);
  }
  if (kind == RecordKind::kClocks) {
    ASSIGN_OR_RETURN(const auto clocks, reader.Parse<v1::TableClocks>());
    return replayer.Apply(info, clocks);
  }
  if (kind == RecordKind::kClock) {
    ASSIGN_OR_RETURN(const auto event, reader.Parse<v1::ClockEvent>());
    return replayer.Apply(info, event);
  }
  return reader.Damaged(
      absl::StrCat("an unknown record ", static_cast<uint32_t>(kind)));
}

}  // namespace

absl::StatusOr<PushOutcome> ApplyPush(TablePartition& partition,
                                      const LoggedPush& push,
                                      Admission admission) {
  const KeyBatch batch = {push.keys.data(), push.keys.size()};
  const float* const values = push.values.data();
  switch (push.kind) {
    case PushKind::kAssign:
      return partition.Assign(batch, values, ExistingRows::kReplace, push.id,
                              admission);
    case PushKind::kAssignMissing:
      return partition.Assign(batch, values, ExistingRows::kKeep, push.id,
                              admission);
    case PushKind::kUpdate:
      break;
  }
  PushRate rate = push.rate;
  if (!rate.step.has_value() && push.worker_time.joined()) {
    rate.step = push.worker_time.clock;
  }
  return partition.Push(batch, values, rate, push.id, admission);
}

absl::Status PushLog::Failed(const char* operation, int error) const {
  const std::string message = absl::StrCat("cannot ", operation, " the log ",
                                           path_, ": ", std::strerror(error));
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    return absl::ResourceExhaustedError(message);
  }
  return absl::UnavailableError(message);
}

absl::StatusOr<std::unique_ptr<PushLog>> PushLog::Create(
    const std::string& path, const TableFileInfo& info, PushLogging logging,
    telemetry::DurationHistogram* sync_durations) {
  const int fd = open(path.c_str(),
                      O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
  const int error = errno;
  std::unique_ptr<PushLog> log(
      new PushLog(path, fs::UniqueFd(fd), logging, sync_durations));
  if (fd < 0) return log->Failed("create", error);
  const std::string header = ToProto(info).SerializeAsString();
  const std::span<const std::byte> body[] = {
      std::as_bytes(std::span(header.data(), header.size()))};
  const RecordPrefix prefix = MakeRecordPrefix(RecordKind::kHeader, body);
  const std::span<const std::byte> parts[] = {
      std::as_bytes(std::span(kMagic, kMagicBytes)), prefix, body[0]};
  absl::Status status;
  {
    const async::MutexLock lock(&log->mutex_);
    status = log->Write(parts);
  }
  if (status.ok() && logging == PushLogging::kSync) {
    status = log->SyncDirectory();
  }
  if (status.ok()) return log;
  // A file without pushes: the log can be created again.
  unlink(path.c_str());
  return status;
}

absl::Status PushLog::SyncDirectory() const {
  const std::string directory =
      std::filesystem::path(path_).parent_path().string();
  const fs::UniqueFd opened(
      open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.valid() || fsync(opened.get()) != 0) {
    return Failed("sync the directory of", errno);
  }
  return absl::OkStatus();
}

int PushLog::Sync() const {
  const auto start = std::chrono::steady_clock::now();
  const int result = fdatasync(file_.get());
  const int error = errno;
  if (sync_durations_ != nullptr) {
    sync_durations_->Record(
        absl::FromChrono(std::chrono::steady_clock::now() - start));
  }
  errno = error;
  return result;
}

absl::Status PushLog::Append(const LoggedPush& push) {
  const PushHeader header = {rpc::ToNumber(push.id.client),
                             push.id.sequence,
                             push.worker_time.join,
                             push.worker_time.clock,
                             push.rate.learning_rate.value_or(
                                 std::numeric_limits<double>::quiet_NaN()),
                             push.rate.step.value_or(-1),
                             push.time,
                             push.removed.size(),
                             push.keys.size()};
  const std::array<std::span<const std::byte>, 4> body = {
      std::as_bytes(std::span(&header, 1)), std::as_bytes(push.removed),
      std::as_bytes(push.keys), std::as_bytes(push.values)};
  if (body[0].size() + body[1].size() + body[2].size() + body[3].size() >
      kMaxRecordBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a push of ", push.keys.size(),
                     " rows is too large for the log: split it"));
  }
  return AppendRecord(RecordKindOf(push.kind), body);
}

absl::Status PushLog::Append(const v1::TableClocks& clocks) {
  const std::string bytes = clocks.SerializeAsString();
  const std::span<const std::byte> body[] = {
      std::as_bytes(std::span(bytes.data(), bytes.size()))};
  return AppendRecord(RecordKind::kClocks, body);
}

absl::Status PushLog::Append(const v1::ClockEvent& event) {
  const std::string bytes = event.SerializeAsString();
  const std::span<const std::byte> body[] = {
      std::as_bytes(std::span(bytes.data(), bytes.size()))};
  return AppendRecord(RecordKind::kClock, body);
}

absl::Status PushLog::AppendRecord(
    RecordKind kind, std::span<const std::span<const std::byte>> body) {
  const RecordPrefix prefix = MakeRecordPrefix(kind, body);
  std::vector<std::span<const std::byte>> parts = {prefix};
  parts.insert(parts.end(), body.begin(), body.end());
  const async::MutexLock lock(&mutex_);
  if (broken_) {
    return absl::UnavailableError(absl::StrCat(
        "the log ", path_,
        " has an incomplete record that cannot be cut off: save a snapshot"));
  }
  return Write(parts);
}

absl::Status PushLog::Write(std::span<const std::span<const std::byte>> parts) {
  std::vector<iovec> rest;
  int64_t total = 0;
  for (const std::span<const std::byte> part : parts) {
    rest.push_back({const_cast<std::byte*>(part.data()), part.size()});
    total += static_cast<int64_t>(part.size());
  }
  size_t next = 0;
  int error = 0;
  const char* operation = "write";
  while (next < rest.size() && error == 0) {
    const ssize_t written =
        writev(file_.get(), &rest[next], static_cast<int>(rest.size() - next));
    if (written < 0) {
      if (errno != EINTR) error = errno;
      continue;
    }
    auto count = static_cast<size_t>(written);
    while (next < rest.size() && count >= rest[next].iov_len) {
      count -= rest[next++].iov_len;
    }
    if (next == rest.size()) break;
    rest[next].iov_base = static_cast<std::byte*>(rest[next].iov_base) + count;
    rest[next].iov_len -= count;
  }
  if (error == 0 && logging_ == PushLogging::kSync && Sync() != 0) {
    error = errno;
    operation = "sync";
    // The kernel may have dropped the pages: nothing is known of the file.
    broken_ = true;
  }
  if (error == 0) {
    bytes_ += total;
    return absl::OkStatus();
  }
  if (ftruncate(file_.get(), bytes_) != 0) broken_ = true;
  return Failed(operation, error);
}

absl::Status PushLog::Replay(const std::string& path, Replayer& replayer) {
  std::error_code error;
  if (std::filesystem::file_size(path, error) < kMagicBytes && !error) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(RecordReader reader, RecordReader::Open(path, kMagic));
  const absl::StatusOr<RecordKind> first = reader.Next();
  if (!first.ok() && reader.torn()) return absl::OkStatus();
  RETURN_IF_ERROR(first);
  if (*first != RecordKind::kHeader) {
    return reader.Damaged("the header is missing");
  }
  ASSIGN_OR_RETURN(const auto header, reader.Parse<v1::TableFileHeader>());
  const absl::StatusOr<TableFileInfo> info = FromProto(header);
  if (!info.ok()) return reader.Damaged(std::string(info.status().message()));
  while (!reader.at_end()) {
    const absl::StatusOr<RecordKind> kind = reader.Next();
    if (!kind.ok() && reader.torn()) break;
    RETURN_IF_ERROR(kind);
    RETURN_IF_ERROR(ReplayRecord(reader, *kind, *info, replayer));
  }
  return absl::OkStatus();
}

}  // namespace hawser::ps

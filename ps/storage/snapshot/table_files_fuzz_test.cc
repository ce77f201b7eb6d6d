// Any records, with right checksums, and any bytes, as a file of rows, as an
// increment of one, and as a log of pushes.
//
// The first byte of the input chooses: 0, the rest is the file; else the rest
// is records for the file: kind (1 byte), length of the body (2 bytes), body.
// With 2 the header of an increment comes before them, with 3 that of a whole
// file, so that the input is what follows.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/check.h"
#include "proto/table_files.pb.h"
#include "ps/storage/push_log.h"
#include "ps/storage/record.h"
#include "ps/storage/snapshot/table_file.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_spec.h"
#include "ps/storage/worker_clocks.h"

namespace {

// The header of a file of `table` as a record of the input.
std::string HeaderOf(const hawser::ps::SparseTable& table,
                     std::optional<hawser::ps::SnapshotBase> base) {
  const std::string body =
      hawser::ps::ToProto(
          hawser::ps::TableFileInfo{
              .snapshot = 2,
              .spec = table.spec(),
              .shards = table.shards(),
              .num_partitions = static_cast<int64_t>(table.num_partitions()),
              .base = std::move(base)})
          .SerializeAsString();
  return absl::StrCat(std::string{'\1', static_cast<char>(body.size() & 0xff),
                                  static_cast<char>(body.size() >> 8)},
                      body);
}

std::string WithChecksums(const std::string& text, const char* magic) {
  std::span<const uint8_t> input(reinterpret_cast<const uint8_t*>(text.data()),
                                 text.size());
  std::string file = magic;
  while (input.size() >= 3) {
    const size_t length =
        std::min<size_t>(input[1] | input[2] << 8, input.size() - 3);
    const std::span<const std::byte> body[] = {
        std::as_bytes(input.subspan(3, length))};
    const hawser::ps::RecordPrefix prefix =
        hawser::ps::MakeRecordPrefix(hawser::ps::RecordKind{input[0]}, body);
    file.append(reinterpret_cast<const char*>(prefix.data()), prefix.size());
    file.append(reinterpret_cast<const char*>(body[0].data()), length);
    input = input.subspan(3 + length);
  }
  return file;
}

// Checks the records of a log.
class ReplayChecks final : public hawser::ps::PushLog::Replayer {
 public:
  absl::Status Apply(const hawser::ps::TableFileInfo& of,
                     const hawser::ps::LoggedPush& push) override {
    HAWSER_CHECK(push.values.size() ==
                 push.keys.size() * static_cast<size_t>(of.spec.width))
        << "as many values as keys";
    return absl::OkStatus();
  }
  absl::Status Apply(const hawser::ps::TableFileInfo& of,
                     const hawser::v1::TableClocks& clocks) override {
    const auto read =
        hawser::ps::WorkerClocks::FromProto(of.spec.consistency, clocks);
    HAWSER_CHECK(!read.ok() || (*read)->completed() >= 0) << "clocks";
    return absl::OkStatus();
  }
  absl::Status Apply(const hawser::ps::TableFileInfo& of,
                     const hawser::v1::ClockEvent& event) override {
    hawser::ps::WorkerClocks clocks(of.spec.consistency);
    const absl::StatusOr<bool> changes = clocks.Check(event);
    if (changes.ok() && *changes) clocks.Apply(event);
    return absl::OkStatus();
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const hawser::ps::TableSpec spec{
      .name = "t",
      .width = 2,
      .rule = {"Adagrad", {{"lr", 0.1}}},
      .retention = {.ttl = absl::Hours(1), .max_rows = 1000}};

  // Few partitions, as each run makes new tables.
  const auto table =
      *hawser::ps::SparseTable::Create(spec, {.num_partitions = 1});
  const auto other =
      *hawser::ps::SparseTable::Create(spec, {.num_partitions = 2});
  static const std::string whole_header = HeaderOf(*other, std::nullopt);
  static const std::string increment_header =
      HeaderOf(*other, hawser::ps::SnapshotBase{"base", 1, 1});

  // In memory, as each run writes it twice.
  static const int file = memfd_create("fuzzed", 0);
  static const std::string path = absl::StrCat("/proc/self/fd/", file);
  const std::string rest(reinterpret_cast<const char*>(data + 1), size - 1);
  const auto write = [&](const char* magic) {
    const std::string bytes =
        data[0] == 0 ? rest
                     : WithChecksums((data[0] == 2   ? increment_header
                                      : data[0] == 3 ? whole_header
                                                     : std::string()) +
                                         rest,
                                     magic);
    HAWSER_CHECK(ftruncate(file, 0) == 0 &&
                 pwrite(file, bytes.data(), bytes.size(), 0) ==
                     static_cast<ssize_t>(bytes.size()))
        << "memfd";
  };

  write("HWSRTBL1");
  const absl::Status status = hawser::ps::ReadTableFiles({{path}}, *table);
  HAWSER_CHECK(status.ok() || absl::IsDataLoss(status) ||
               absl::IsInvalidArgument(status))
      << status.message();
  static const std::string base = [&] {
    const auto empty =
        *hawser::ps::SparseTable::Create(spec, {.num_partitions = 2});
    const char* const directory = std::getenv("TEST_TMPDIR");
    const std::string base_path =
        absl::StrCat(directory == nullptr ? "/tmp" : directory, "/base");
    HAWSER_CHECK(
        hawser::ps::WriteTableFile(*empty, {.snapshot = 1}, base_path).ok())
        << base_path;
    return base_path;
  }();
  const absl::Status chain = hawser::ps::ReadTableFiles({{base, path}}, *other);
  HAWSER_CHECK(chain.ok() || absl::IsDataLoss(chain) ||
               absl::IsInvalidArgument(chain))
      << chain.message();
  const auto info = hawser::ps::ReadTableFileInfo(path);
  HAWSER_CHECK(info.ok() || !status.ok()) << info.status().message();

  write("HWSRLOG1");
  ReplayChecks checks;
  const absl::Status replayed = hawser::ps::PushLog::Replay(path, checks);
  HAWSER_CHECK(replayed.ok() || absl::IsDataLoss(replayed))
      << replayed.message();
  return 0;
}

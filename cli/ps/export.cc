#include "cli/ps/export.h"

#include <memory>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "ps/storage/disk/rocksdb_storage.h"
#include "ps/storage/disk/row_disk.h"
#include "ps/storage/snapshot/snapshot_directory.h"
#include "ps/storage/sparse_table.h"
#include "ps/storage/table_export.h"

namespace hawser::cli {
namespace {

struct ExportFlags {
  std::string table;
  std::string snapshot;
  std::string path;
  std::string snapshot_directory;
  std::string disk_directory;
};

absl::Status Export(const ExportFlags& flags, const CommandContext& context) {
  const ps::SnapshotDirectory directory(flags.snapshot_directory);
  ps::SparseTableOptions options;
  std::unique_ptr<ps::DiskStorage> disk;
  if (!flags.disk_directory.empty()) {
    disk = std::make_unique<ps::RocksDbStorage>(flags.disk_directory);
    RETURN_IF_ERROR(disk->Open("export"));
    options.disk = disk.get();
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<ps::SparseTable> table,
                   directory.Restore(flags.table, flags.snapshot, {}, options));
  ASSIGN_OR_RETURN(const ps::NamedTensors tensors, ps::ExportTable(*table));
  RETURN_IF_ERROR(ps::WriteTensors(tensors, flags.path));
  for (const auto& [name, tensor] : tensors) {
    context.out << name << ' ' << tensor.ToString() << '\n';
  }
  return absl::OkStatus();
}

}  // namespace

void AddPsExport(CLI::App& ps, CommandContext& context) {
  auto flags = std::make_shared<ExportFlags>();
  CLI::App& command = *ps.add_subcommand(
      "export",
      "Write a table of a snapshot as tensors: its keys and weights, or the "
      "tensors of a dense table. Needs the files of all servers, and no job.");
  command.add_option("TABLE", flags->table, "The name of the table.")
      ->required();
  command.add_option("NAME", flags->snapshot, "The name of the snapshot.")
      ->required();
  command
      .add_option("PATH", flags->path,
                  "A new file, ending in .safetensors, or a new directory for "
                  "a .npy file of each tensor.")
      ->required();
  command
      .add_option("--snapshot-dir", flags->snapshot_directory,
                  "The directory of snapshots.")
      ->type_name("DIR")
      ->required();
  command
      .add_option("--disk-dir", flags->disk_directory,
                  "Directory for the rows of a table that keeps rows in "
                  "RocksDB, while it is exported.")
      ->type_name("DIR");
  command.callback(
      [flags, &context] { context.outcome = Export(*flags, context); });
}

}  // namespace hawser::cli

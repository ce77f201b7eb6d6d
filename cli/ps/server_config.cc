#include "cli/ps/server_config.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "async/status_macros.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"
#include "ps/storage/disk/rocksdb_storage.h"
#include "ps/storage/push_log.h"
#include "ps/table_limits.h"
#include "ps/table_service.h"
#include "rpc/identity/worker_info.h"

namespace hawser::cli {
namespace {

using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;
using ::google::protobuf::TextFormat;
using ParseInfo = TextFormat::ParseInfoTree;

// Of the numbers in all messages of the configuration.
constexpr SettingRange kRanges[] = {
    {"rank", 0, rpc::WorkerId::kMax},       {"max_tables", 1, int64_t{1} << 20},
    {"max_keys", 1, int64_t{1} << 31},      {"max_rows", 0, int64_t{1} << 48},
    {"max_row_bytes", 1, int64_t{1} << 34},
};

int64_t NumberIn(const Message& message, const FieldDescriptor* field) {
  const google::protobuf::Reflection* const reflection =
      message.GetReflection();
  return field->cpp_type() == FieldDescriptor::CPPTYPE_INT32
             ? reflection->GetInt32(message, field)
             : reflection->GetInt64(message, field);
}

// "FILE:LINE: ", the line from 1 on.
std::string Place(const std::string& path, int line) {
  return absl::StrCat(path, ":", line + 1, ": ");
}

// Checks the ranges of the fields that are set. `path` and `info`: of the file
// that they come from.
absl::Status CheckRanges(const Message& message, const std::string& path,
                         const ParseInfo& info) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      RETURN_IF_ERROR(
          CheckRanges(message.GetReflection()->GetMessage(message, field), path,
                      *info.GetTreeForNested(field, -1)));
      continue;
    }
    for (const SettingRange& range : kRanges) {
      if (field->name() != range.field) continue;
      const int64_t value = NumberIn(message, field);
      if (value >= range.min && value <= range.max) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(Place(path, info.GetLocation(field, -1).line),
                       "field \"", field->name(), "\" must be between ",
                       range.min, " and ", range.max, ", not ", value));
    }
  }
  return absl::OkStatus();
}

// Keeps the first error of a parser.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  FirstError(const std::string& path, const std::string& text)
      : path_(path), lines_(absl::StrSplit(text, '\n')) {}

  void AddError(int line, int column, const std::string& message) override {
    (void)column;
    if (!status_.ok()) return;
    const auto index = static_cast<size_t>(line);
    const std::string text =
        index < lines_.size()
            ? std::string(absl::StripAsciiWhitespace(lines_[index]))
            : "";
    // Some messages of the parser do not name the field.
    status_ = absl::InvalidArgumentError(
        absl::StrCat(Place(path_, line), message, " In: ", text));
  }

  const absl::Status& status() const { return status_; }

 private:
  const std::string path_;
  const std::vector<std::string> lines_;
  absl::Status status_;
};

ps::PushLogging LoggingOf(v1::TableServerConfig::Logging logging) {
  switch (logging) {
    case v1::TableServerConfig::WRITE:
      return ps::PushLogging::kWrite;
    case v1::TableServerConfig::SYNC:
      return ps::PushLogging::kSync;
    default:
      return ps::PushLogging::kOff;
  }
}

}  // namespace

std::span<const SettingRange> SettingRanges() { return kRanges; }

v1::TableServerConfig DefaultServerConfig() {
  v1::TableServerConfig config;
  const launch::WorkerOptions worker;
  config.set_job(worker.identity.job);
  config.set_bind(worker.network.bind_address);
  config.set_logging(v1::TableServerConfig::OFF);
  const ps::TableLimits limits;
  config.mutable_limits()->set_max_tables(limits.max_tables);
  config.mutable_limits()->set_max_keys(limits.max_keys);
  config.mutable_limits()->set_max_rows(limits.max_rows);
  config.mutable_limits()->set_max_row_bytes(limits.max_row_bytes);
  config.mutable_metrics()->set_allow_network(worker.metrics.allow_network);
  return config;
}

absl::StatusOr<v1::TableServerConfig> ReadServerConfig(
    const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the configuration ", path, " is not a file",
                     error ? absl::StrCat(": ", error.message()) : ""));
  }
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  if (!file.is_open() || file.bad()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read the configuration ", path));
  }
  FirstError first_error(path, text);
  ParseInfo info;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&first_error);
  parser.WriteLocationsTo(&info);
  v1::TableServerConfig config;
  if (!parser.ParseFromString(text, &config)) return first_error.status();
  RETURN_IF_ERROR(CheckRanges(config, path, info));
  return config;
}

std::string ServerConfigText(const v1::TableServerConfig& config) {
  std::string text;
  TextFormat::PrintToString(config, &text);
  return text;
}

launch::WorkerOptions WorkerOptionsOf(const v1::TableServerConfig& config) {
  launch::WorkerOptions options;
  options.identity.name = config.name();
  if (config.has_rank()) options.identity.rank = config.rank();
  options.identity.job = config.job();
  options.meeting_place.url = config.init_url();
  options.network.bind_address = config.bind();
  options.network.advertise_address = config.advertise();
  options.metrics.address = config.metrics().address();
  options.metrics.allow_network = config.metrics().allow_network();
  const v1::TableServerLimits& limits = config.limits();
  ps::TableServiceOptions tables;
  tables.snapshot_directory = config.snapshot_directory();
  if (!config.disk_directory().empty()) {
    tables.disk = std::make_shared<ps::RocksDbStorage>(config.disk_directory());
  }
  tables.logging = LoggingOf(config.logging());
  tables.limits.max_tables = limits.max_tables();
  tables.limits.max_keys = limits.max_keys();
  tables.limits.max_rows = limits.max_rows();
  tables.limits.max_row_bytes = limits.max_row_bytes();
  options.services.push_back(
      std::make_unique<ps::TableService>(std::move(tables)));
  return options;
}

}  // namespace hawser::cli

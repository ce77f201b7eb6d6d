#include "ps/training/checkpoint.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "fs/atomic_file.h"
#include "fs/input_file.h"
#include "nlohmann/json.hpp"

namespace hawser::ps {
namespace {

constexpr uint64_t kMaxFileBytes = 64 << 10;

std::string PathIn(const std::string& directory) {
  return absl::StrCat(directory, "/checkpoint.json");
}

bool HasNumber(const nlohmann::json& json, const char* name) {
  return json.contains(name) && json[name].is_number_unsigned() &&
         json[name] <= uint64_t{1} << 62;
}

}  // namespace

absl::Status WriteCheckpoint(const std::string& directory,
                             const Checkpoint& checkpoint) {
  const nlohmann::ordered_json json = {{"snapshot", checkpoint.snapshot},
                                       {"epochs", checkpoint.epochs},
                                       {"samples", checkpoint.samples}};
  const std::string text = absl::StrCat(json.dump(), "\n");
  ASSIGN_OR_RETURN(fs::AtomicFile file,
                   fs::AtomicFile::Create(PathIn(directory)));
  RETURN_IF_ERROR(file.Append(std::as_bytes(std::span(text))));
  return file.Commit();
}

absl::StatusOr<Checkpoint> ReadCheckpoint(const std::string& directory) {
  ASSIGN_OR_RETURN(const fs::InputFile file,
                   fs::InputFile::Open(PathIn(directory)));
  std::string text(static_cast<size_t>(std::min(file.bytes(), kMaxFileBytes)),
                   '\0');
  RETURN_IF_ERROR(file.ReadAt(0, std::as_writable_bytes(std::span(text))));
  const nlohmann::json json =
      nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("snapshot") ||
      !json["snapshot"].is_string() || !HasNumber(json, "epochs") ||
      !HasNumber(json, "samples")) {
    return absl::DataLossError(
        absl::StrCat(file.path(),
                     " is damaged: it must be an object with "
                     "\"snapshot\", \"epochs\" and \"samples\""));
  }
  return Checkpoint{.snapshot = json["snapshot"].get<std::string>(),
                    .epochs = json["epochs"].get<int64_t>(),
                    .samples = json["samples"].get<int64_t>()};
}

}  // namespace hawser::ps

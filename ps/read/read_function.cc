#include "ps/read/read_function.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "async/mutex.h"
#include "ps/storage/table_spec.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

constexpr size_t kMaxNameLength = 100;

// The read functions of the process, by name.
class Functions {
 public:
  // A process has one: functions are code, and that is the process's as well.
  static Functions& Get() {
    static Functions& functions = *new Functions();
    return functions;
  }

  bool Add(std::string_view name, ReadFunctionFactory factory) {
    const async::MutexLock lock(&mutex_);
    return factories_.emplace(name, std::move(factory)).second;
  }

  // Empty: there is none.
  ReadFunctionFactory Find(std::string_view name) const {
    const async::MutexLock lock(&mutex_);
    const auto found = factories_.find(name);
    return found == factories_.end() ? ReadFunctionFactory() : found->second;
  }

  std::vector<std::string> names() const {
    const async::MutexLock lock(&mutex_);
    std::vector<std::string> names;
    for (const auto& [name, factory] : factories_) names.push_back(name);
    return names;
  }

 private:
  mutable async::Mutex mutex_;
  std::map<std::string, ReadFunctionFactory, std::less<>> factories_
      ABSL_GUARDED_BY(mutex_);
};

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
         c == '-' || c == '.';
}

absl::Status Invalid(std::string_view name, const TableSpec& table,
                     std::string_view problem) {
  return absl::InvalidArgumentError(
      absl::StrCat("table \"", table.name, "\": read function \"",
                   std::string(name), "\" ", std::string(problem)));
}

}  // namespace

absl::Status RegisterReadFunction(std::string_view name,
                                  ReadFunctionFactory factory) {
  if (name.empty() || name.size() > kMaxNameLength ||
      !std::all_of(name.begin(), name.end(), IsNameCharacter)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a read function needs a name of 1 to ", kMaxNameLength,
                     " letters, digits, '_', '-' and '.'"));
  }
  if (factory == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "read function \"", std::string(name), "\" needs a factory"));
  }
  if (Functions::Get().Add(name, std::move(factory))) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat(
      "this process has a read function \"", std::string(name), "\" already"));
}

absl::StatusOr<ReadFunction> MakeReadFunction(
    std::string_view name, const TableSpec& table,
    std::span<const Tensor> arguments) {
  const ReadFunctionFactory factory = Functions::Get().Find(name);
  if (factory == nullptr) {
    const std::vector<std::string> names = Functions::Get().names();
    return Invalid(
        name, table,
        absl::StrCat("is not known to this server, which has ",
                     names.empty() ? "none" : absl::StrJoin(names, ", "),
                     ": give it to ps::RegisterReadFunction before the server "
                     "is started"));
  }
  absl::StatusOr<ReadFunction> function = factory(table, arguments);
  if (!function.ok()) {
    return Invalid(name, table,
                   absl::StrCat("refuses the request: ",
                                std::string(function.status().message())));
  }
  if (function->width < 1 || function->width > ReadFunction::kMaxWidth ||
      function->read == nullptr) {
    return Invalid(
        name, table,
        absl::StrCat("has results of ", function->width, " numbers, of 1 to ",
                     ReadFunction::kMaxWidth, ", or nothing that reads"));
  }
  return function;
}

}  // namespace hawser::ps

#include "ps/read/read_function.h"

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "optim/named_factories.h"
#include "ps/storage/table_spec.h"
#include "tensor/tensor.h"

namespace hawser::ps {
namespace {

// A process has one set of read functions: they are code, and that is the
// process's as well.
optim::NamedFactories<ReadFunctionFactory>& Functions() {
  static auto& functions =
      *new optim::NamedFactories<ReadFunctionFactory>("a read function");
  return functions;
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
  return Functions().Register(name, std::move(factory));
}

absl::StatusOr<ReadFunction> MakeReadFunction(
    std::string_view name, const TableSpec& table,
    std::span<const Tensor> arguments) {
  const ReadFunctionFactory factory = Functions().Find(name);
  if (factory == nullptr) {
    const std::vector<std::string> names = Functions().names();
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

#include "rpc/identity/call_options.h"

#include "absl/strings/str_cat.h"

namespace hawser::rpc {
namespace {

struct Describe {
  std::string operator()(const std::string& name) const {
    return absl::StrCat("worker '", name, "'");
  }
  std::string operator()(WorkerId id) const {
    return absl::StrCat("worker of rank ", id.value());
  }
  std::string operator()(const WorkerInfo& worker) const {
    return rpc::ToString(worker);
  }
};

}  // namespace

std::string Destination::ToString() const {
  return std::visit(Describe(), to_);
}

std::string Destination::name() const {
  if (const auto* name = std::get_if<std::string>(&to_)) return *name;
  if (const auto* worker = std::get_if<WorkerInfo>(&to_)) return worker->name;
  return "";
}

WorkerInfo Destination::worker() const {
  if (const auto* worker = std::get_if<WorkerInfo>(&to_)) return *worker;
  WorkerInfo worker;
  worker.name = name();
  return worker;
}

}  // namespace hawser::rpc

#include "rpc/call_options.h"

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

}  // namespace hawser::rpc

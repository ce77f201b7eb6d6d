#include "examples/mnist_ps/server.h"

#include <string>

#include "async/status_macros.h"
#include "examples/mnist_ps/functions.h"
#include "examples/mnist_ps/job_member.h"
#include "examples/mnist_ps/parameter_shelf.h"
#include "rpc/agent/current_call.h"
#include "rpc/functions/function_registry.h"

namespace hawser::examples::mnist_ps {

absl::Status RunServer(const Options& options) {
  ParameterShelf shelf;
  rpc::FunctionRegistry registry;
  RETURN_IF_ERROR(registry.Register(
      kCreateParameter, [&shelf](const std::string& name, const Tensor& value) {
        return shelf.Create(rpc::CurrentCall::Get()->agent(), name, value);
      }));
  RETURN_IF_ERROR(registry.Register(
      kFindParameter,
      [&shelf](const std::string& name) { return shelf.Find(name); }));
  ASSIGN_OR_RETURN(const auto member, JobMember::Join(options, registry));
  const absl::Status outcome = member->monitor().ended().Wait();
  shelf.Clear();
  return member->Leave(outcome);
}

}  // namespace hawser::examples::mnist_ps

#include "cli/call.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "cli/job_access.h"
#include "cli/json_value.h"
#include "cli/signature.h"
#include "cli/worker_client.h"
#include "nlohmann/json.hpp"

namespace hawser::cli {
namespace {

using nlohmann::json;

// Limit on the nesting of arguments; workers have the same one.
constexpr int kMaxDepth = 64;

struct CallFlags {
  JobFlags job;
  std::string worker;
  std::string function;
  std::vector<std::string> arguments;
};

// `text` is the text of `signature`.
absl::StatusOr<v1::CallRequest> MakeRequest(const CallFlags& flags,
                                            const std::string& text,
                                            const Signature& signature) {
  if (signature.parameters.size() != flags.arguments.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "function '", flags.function, "' is ", text,
        ", but the command line has ", flags.arguments.size(), " arguments"));
  }
  v1::CallRequest request;
  request.set_function(flags.function);
  request.set_signature(text);
  for (size_t i = 0; i < flags.arguments.size(); ++i) {
    bool too_deep = false;
    const json value = json::parse(
        flags.arguments[i],
        [&](int depth, json::parse_event_t, const json&) {
          too_deep = too_deep || depth > kMaxDepth;
          return !too_deep;
        },
        /*allow_exceptions=*/false);
    if (too_deep) {
      return absl::InvalidArgumentError(absl::StrCat(
          "argument ", i + 1, " has more than ", kMaxDepth, " nested levels"));
    }
    if (value.is_discarded()) {
      return absl::InvalidArgumentError(
          absl::StrCat("argument ", i + 1, " is not JSON: ", flags.arguments[i],
                       " (write a string with its quotes: '\"text\"')"));
    }
    RETURN_IF_ERROR(AddArgument(value, signature, request));
  }
  return request;
}

// Prints the result as one line.
absl::Status Print(const v1::CallReply& reply, const Signature& signature,
                   std::ostream& out) {
  ASSIGN_OR_RETURN(const json result, ResultOf(reply, signature));
  out << result.dump(-1, ' ', false, json::error_handler_t::replace)
      << std::endl;
  return absl::OkStatus();
}

// An error of the function. It must not be taken for an error in the command
// line: kNotFound means that the function has not found something.
absl::Status FunctionError(const absl::Status& status) {
  return absl::IsNotFound(status) ? absl::UnknownError(status.message())
                                  : status;
}

absl::Status Call(const CallFlags& flags, std::ostream& out) {
  ASSIGN_OR_RETURN(const auto credentials, CredentialsOf(flags.job));
  ASSIGN_OR_RETURN(const rpc::WorkerInfo worker,
                   FindMember(flags.job, credentials, flags.worker));
  WorkerClient client(worker, flags.job.job, CallerName(flags.job), credentials,
                      flags.job.timeout());
  ASSIGN_OR_RETURN(const std::string text, client.SignatureOf(flags.function));
  ASSIGN_OR_RETURN(const Signature signature, ParseSignature(text));
  ASSIGN_OR_RETURN(v1::CallRequest request,
                   MakeRequest(flags, text, signature));
  if (signature.is_stream) {
    return FunctionError(
        client.ReadStream(std::move(request), [&](const v1::CallReply& value) {
          return Print(value, signature, out);
        }));
  }
  const absl::StatusOr<v1::CallReply> reply = client.Call(std::move(request));
  if (!reply.ok()) return FunctionError(reply.status());
  return Print(*reply, signature, out);
}

}  // namespace

void AddCall(CLI::App& hawser, CommandContext& context) {
  CLI::App* call = hawser.add_subcommand(
      "call",
      "Call a function of a worker once. Print its result as JSON, or each "
      "value of its stream as a line of JSON.");
  auto flags = std::make_shared<CallFlags>();
  call->add_option("WORKER", flags->worker, "The worker's name.")->required();
  call->add_option("FUNCTION", flags->function, "The function's name.")
      ->required();
  call->add_option("ARGUMENT", flags->arguments,
                   "Arguments in JSON, one per parameter (docs/cli.md).");
  AddJobFlags(*call, flags->job);
  call->callback(
      [flags, &context] { context.outcome = Call(*flags, context.out); });
}

}  // namespace hawser::cli

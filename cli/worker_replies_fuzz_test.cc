// Fuzz test: signatures and replies of a worker that is not trusted, and
// arguments as any JSON.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/check.h"
#include "bazel/fuzz/fuzz_input.h"
#include "bazel/fuzz/message_maker.h"
#include "cli/escape_for_terminal.h"
#include "cli/json_value.h"
#include "cli/signature.h"
#include "nlohmann/json.hpp"
#include "proto/rpc.pb.h"
#include "proto/tensor.pb.h"

namespace hawser::cli {
namespace {

using ::nlohmann::json;

constexpr const char* kSignatures[] = {
    "Tensor(Tensor)",
    "list<Tensor>(list<int8>, uint64)",
    "map<string, optional<double>>(map<string, float>, map<int64, bool>)",
    "tuple<int64, string>(tuple<int64, string>)",
    "Tree(Tree) where Tree{value: int64, next: optional<Tree>}",
    "my.Type(my.Type)",
    "void()",
};

std::string MakeSignature(fuzz::FuzzInput& input) {
  const size_t choice = input.Below(std::size(kSignatures) + 2);
  return choice < std::size(kSignatures) ? kSignatures[choice]
                                         : std::string(input.Bytes());
}

v1::CallReply MakeReply(fuzz::FuzzInput& input, fuzz::MessageMaker& maker) {
  auto reply = maker.Make<v1::CallReply>();
  const size_t num_tensors = input.Below(3);
  for (size_t i = 0; i < num_tensors; ++i) {
    maker.Fill(*reply.add_tensors());
    reply.add_tensor_data(std::string(input.Bytes()));
  }
  return reply;
}

// Arguments, whatever they are, become a request whose tensors exist.
void AddArguments(std::string_view text, const Signature& signature) {
  const json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) return;
  v1::CallRequest request;
  for (size_t i = 0; i < signature.parameters.size(); ++i) {
    const absl::Status added = AddArgument(value, signature, request);
    HAWSER_CHECK(added.ok() || absl::IsInvalidArgument(added)) << added;
    HAWSER_CHECK(request.tensors_size() == request.tensor_data_size());
  }
}

}  // namespace
}  // namespace hawser::cli

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hawser::cli;
  hawser::fuzz::FuzzInput input(data, size);
  hawser::fuzz::MessageMaker maker(&input);
  const std::string text = MakeSignature(input);
  const absl::StatusOr<Signature> signature = ParseSignature(text);
  (void)EscapeForTerminal(text);
  if (!signature.ok()) {
    HAWSER_CHECK(absl::IsInvalidArgument(signature.status()));
    return 0;
  }
  HAWSER_CHECK(*ParseType(ToString(signature->result)) == signature->result);
  if (input.Bool()) {
    AddArguments(input.Take(size), *signature);
    return 0;
  }
  const absl::StatusOr<nlohmann::json> result =
      ResultOf(MakeReply(input, maker), *signature);
  HAWSER_CHECK(result.ok() || absl::IsInternal(result.status()))
      << result.status();
  return 0;
}

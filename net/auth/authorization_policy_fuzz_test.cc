// Fuzz test: parses arbitrary bytes as an authorization policy, and JSON of the
// form that policies have.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "async/check.h"
#include "bazel/fuzz/fuzz_input.h"
#include "net/auth/authorization_policy.h"

namespace hawser::net {
namespace {

using nlohmann::json;

// Mostly `value`, sometimes one of another kind.
json Mostly(fuzz::FuzzInput& input, json value) {
  const json others[] = {nullptr,
                         true,
                         -1,
                         1e300,
                         "",
                         json::array(),
                         json::object(),
                         json::array({json::object()})};
  const size_t choice = input.Below(64);
  return choice < std::size(others) ? others[choice] : value;
}

json MakeText(fuzz::FuzzInput& input) {
  constexpr const char* kTexts[] = {"*",
                                    "**",
                                    "a*b",
                                    "hawser://j/w1",
                                    "hawser-role:*",
                                    "/a.A/Push",
                                    "*/PushInFragments",
                                    "*Fragments",
                                    "/b.*"};
  const size_t choice = input.Below(std::size(kTexts) + 2);
  return choice < std::size(kTexts) ? kTexts[choice]
                                    : std::string(input.Bytes());
}

// {"principals": ["*"]}
json MakeTexts(fuzz::FuzzInput& input, const char* key) {
  json texts = json::array();
  for (size_t i = input.Below(4); i > 0; --i) {
    texts.push_back(Mostly(input, MakeText(input)));
  }
  json object = json::object();
  object[key] = Mostly(input, std::move(texts));
  return object;
}

json MakeRules(fuzz::FuzzInput& input) {
  json rules = json::array();
  for (size_t i = input.Below(4); i > 0; --i) {
    json rule = {{"name", Mostly(input, "a rule")}};
    if (input.Bool()) {
      rule["source"] = Mostly(input, MakeTexts(input, "principals"));
    }
    if (input.Bool()) {
      rule["request"] = Mostly(input, MakeTexts(input, "paths"));
    }
    rules.push_back(Mostly(input, std::move(rule)));
  }
  return Mostly(input, std::move(rules));
}

std::string MakePolicy(fuzz::FuzzInput& input) {
  json policy = {{"name", Mostly(input, "policy")}};
  if (input.Bool()) policy["deny_rules"] = MakeRules(input);
  policy["allow_rules"] = MakeRules(input);
  return Mostly(input, std::move(policy))
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

void CheckPolicy(const std::string& text) {
  const auto rules = AuthorizationRules::Parse(text);
  if (!rules.ok()) {
    HAWSER_CHECK(absl::IsInvalidArgument(rules.status()));
    return;
  }
  for (const char* path :
       {"", "/a.A/Push", "/b.B/PullInFragments", "InFragments"}) {
    const absl::Status answer =
        rules->Check({"hawser://j/w1", "hawser-role:intern"}, path);
    HAWSER_CHECK(answer.ok() || absl::IsPermissionDenied(answer));
  }
}

}  // namespace
}  // namespace hawser::net

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hawser::fuzz::FuzzInput input(data, size);
  hawser::net::CheckPolicy(input.Bool() ? hawser::net::MakePolicy(input)
                                        : std::string(input.Take(size)));
  return 0;
}

#include "rpc/wire/structs/type_definitions.h"

#include <algorithm>
#include <utility>

namespace hawser::rpc {

bool TypeDefinitions::Add(std::string definition) {
  if (std::find(definitions_.begin(), definitions_.end(), definition) !=
      definitions_.end()) {
    return false;
  }
  definitions_.push_back(std::move(definition));
  return true;
}

std::string TypeDefinitions::ToString() const {
  std::string text;
  for (const std::string& definition : definitions_) {
    text += text.empty() ? kBegin : kSeparator;
    text += definition;
  }
  return text;
}

}  // namespace hawser::rpc

#include "rref/ids.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace hawser::rref {

std::string GlobalId::ToString() const {
  return absl::StrCat(creator.id.value(), "#", number);
}

}  // namespace hawser::rref

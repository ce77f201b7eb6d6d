#include "rpc/wire/structs/struct_traits.h"

#include "absl/strings/str_cat.h"
#include "rpc/errors/status_prefix.h"

namespace hawser::rpc::internal {

absl::Status InStruct(std::string_view type, std::string_view field,
                      const absl::Status& status) {
  const std::string name(type);
  return WithPrefix(field.empty() ? name
                                  : absl::StrCat("field '", std::string(field),
                                                 "' of ", name),
                    status);
}

}  // namespace hawser::rpc::internal

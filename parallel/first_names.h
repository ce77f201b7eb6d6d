// Names of parameters in errors.

#ifndef HAWSER_PARALLEL_FIRST_NAMES_H_
#define HAWSER_PARALLEL_FIRST_NAMES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nn/module.h"

namespace hawser::parallel {

// The names of these parameters, of many only the first: "a, b, ...".
inline std::string FirstNames(const nn::NamedTensors& parameters,
                              const std::vector<size_t>& indices) {
  constexpr size_t kNamed = 5;
  std::string text;
  for (size_t i = 0; i < indices.size() && i <= kNamed; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ",
                    i == kNamed ? "..." : parameters[indices[i]].first);
  }
  return text;
}

}  // namespace hawser::parallel

#endif  // HAWSER_PARALLEL_FIRST_NAMES_H_

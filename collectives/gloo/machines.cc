#include "collectives/gloo/machines.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"

namespace hawser::collectives {

Machines::Machines(const std::vector<std::string>& names) {
  std::map<std::string, int> numbers;
  for (size_t rank = 0; rank < names.size(); ++rank) {
    const int machine = numbers.emplace(names[rank], count()).first->second;
    if (machine == count()) ranks_.emplace_back();
    std::vector<int>& ranks = ranks_[static_cast<size_t>(machine)];
    places_.push_back(
        {.machine = machine, .index = static_cast<int>(ranks.size())});
    ranks.push_back(static_cast<int>(rank));
  }
  for (const std::vector<int>& ranks : ranks_) {
    are_equal_ = are_equal_ && ranks.size() == ranks_[0].size();
  }
}

Machines Machines::Split(const std::vector<bool>& can_share) const {
  std::vector<std::string> names;
  for (const Place& place : places_) {
    const std::vector<int>& ranks = ranks_on(place.machine);
    const bool is_kept =
        std::all_of(ranks.begin(), ranks.end(), [&can_share](int rank) {
          return can_share[static_cast<size_t>(rank)];
        });
    names.push_back(is_kept ? absl::StrCat("machine ", place.machine)
                            : absl::StrCat("rank ", names.size()));
  }
  return Machines(names);
}

}  // namespace hawser::collectives

#include "ps/storage/snapshot/rows_files.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace hawser::ps {

std::vector<int64_t> RowsFiles::ChainOf(int64_t number) const {
  std::vector<int64_t> chain;
  auto file = files_.find(number);
  while (file != files_.end()) {
    chain.push_back(file->first);
    const uint64_t base = file->second.base;
    if (base == 0) {
      std::reverse(chain.begin(), chain.end());
      return chain;
    }
    // An increment is saved after its base.
    const auto end = file;
    file = std::find_if(files_.begin(), end, [&](const auto& entry) {
      return entry.second.snapshot == base;
    });
    if (file == end) break;
  }
  return {};
}

void RowsFiles::Keep(const std::set<int64_t>& numbers) {
  std::erase_if(files_, [&](const auto& entry) {
    return !numbers.contains(entry.first);
  });
}

}  // namespace hawser::ps

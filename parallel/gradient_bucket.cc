#include "parallel/gradient_bucket.h"

#include <algorithm>
#include <map>
#include <utility>

namespace hawser::parallel {

std::vector<std::vector<size_t>> AssignBuckets(
    const std::vector<BucketItem>& items, const std::vector<size_t>& order,
    int64_t first_bytes, int64_t bytes) {
  struct Open {
    std::vector<size_t> parameters;
    size_t position = 0;
    int64_t bytes = 0;
    bool is_first = true;
  };
  std::map<tensor::DType, Open> open;
  // With the position of their first parameter.
  std::vector<std::pair<size_t, std::vector<size_t>>> buckets;
  const auto close = [&](Open& bucket) {
    if (bucket.parameters.empty()) return;
    buckets.emplace_back(bucket.position, std::move(bucket.parameters));
    bucket = Open();
    bucket.is_first = false;
  };
  for (size_t position = 0; position < order.size(); ++position) {
    const BucketItem& item = items[order[position]];
    Open& bucket = open[item.dtype];
    if (bucket.parameters.empty()) bucket.position = position;
    bucket.parameters.push_back(order[position]);
    bucket.bytes += item.bytes;
    if (bucket.bytes >= (bucket.is_first ? first_bytes : bytes)) close(bucket);
  }
  for (auto& [dtype, bucket] : open) close(bucket);
  std::sort(buckets.begin(), buckets.end());
  std::vector<std::vector<size_t>> result;
  result.reserve(buckets.size());
  for (auto& [position, parameters] : buckets) {
    result.push_back(std::move(parameters));
  }
  return result;
}

int64_t DefaultBucketBytes(int64_t gradient_bytes) {
  return std::clamp(gradient_bytes / 16, int64_t{1} << 20, int64_t{25} << 20);
}

}  // namespace hawser::parallel

#include "rpc/testing/simulation_seeds.h"

#include <algorithm>
#include <cstdlib>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "async/testing/nightly.h"

namespace hawser::rpc {
namespace {

constexpr const char kVariable[] = "HAWSER_SIMULATION_SEEDS";
constexpr uint64_t kMaxCases = 50;

absl::StatusOr<SeedRange> SeedsOfTest() {
  const char* text = std::getenv(kVariable);
  if (text != nullptr) return ParseSeeds(text);
  return SeedRange{1, async::NightlyOr<uint64_t>(100'000, 1000)};
}

}  // namespace

absl::StatusOr<SeedRange> ParseSeeds(std::string_view text) {
  const absl::string_view all(text.data(), text.size());
  const std::vector<absl::string_view> ends = absl::StrSplit(all, '-');
  SeedRange range;
  if (ends.size() > 2 || !absl::SimpleAtoi(ends.front(), &range.first) ||
      !absl::SimpleAtoi(ends.back(), &range.last) || range.first > range.last) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", all,
                     "' are no seeds: give one, such as 7, or the "
                     "first and the last, such as 1-1000"));
  }
  return range;
}

std::vector<SeedRange> Divide(const SeedRange& seeds, uint64_t count) {
  const uint64_t total = seeds.last - seeds.first + 1;
  count = std::min(count, total);
  std::vector<SeedRange> ranges;
  uint64_t first = seeds.first;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t size = total / count + (i < total % count ? 1 : 0);
    ranges.push_back({first, first + size - 1});
    first += size;
  }
  return ranges;
}

std::vector<SeedRange> SeedsOfCases() {
  const absl::StatusOr<SeedRange> seeds = SeedsOfTest();
  // Without valid seeds there is one case, which fails.
  return Divide(seeds.value_or(SeedRange{}), kMaxCases);
}

void SeedsTest::RunSeeds(
    absl::FunctionRef<std::string(uint64_t seed, bool verbose)> run) {
  const absl::StatusOr<SeedRange> seeds = SeedsOfTest();
  ASSERT_TRUE(seeds.ok()) << kVariable << ": " << seeds.status();
  const bool verbose = seeds->first == seeds->last;
  for (uint64_t seed = GetParam().first; seed <= GetParam().last; ++seed) {
    ASSERT_EQ(run(seed, verbose), "")
        << "seed " << seed << "; again: " << kVariable << "=" << seed;
  }
}

}  // namespace hawser::rpc

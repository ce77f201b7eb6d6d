#include "launch/run/stream_choice.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hawser::launch {
namespace {

std::optional<StreamChoice::Streams> ParseStreams(std::string_view text) {
  if (text.size() != 1 || text[0] < '0' || text[0] > '3') return std::nullopt;
  const int bits = text[0] - '0';
  return StreamChoice::Streams{.output = (bits & 1) != 0,
                               .error = (bits & 2) != 0};
}

}  // namespace

StreamChoice::Streams StreamChoice::Of(int local_rank) const {
  const auto found = by_local_rank.find(local_rank);
  return found == by_local_rank.end() ? others : found->second;
}

bool StreamChoice::empty() const {
  return others == Streams() &&
         std::all_of(by_local_rank.begin(), by_local_rank.end(),
                     [](const auto& each) { return each.second == Streams(); });
}

absl::StatusOr<StreamChoice> ParseStreamChoice(const std::string& text) {
  StreamChoice choice;
  if (const auto all = ParseStreams(text)) {
    choice.others = *all;
    return choice;
  }
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<std::string> pair = absl::StrSplit(part, ':');
    int local_rank = 0;
    const std::optional<StreamChoice::Streams> streams =
        ParseStreams(pair.back());
    if (pair.size() != 2 || !streams.has_value() ||
        !absl::SimpleAtoi(pair[0], &local_rank) || local_rank < 0 ||
        !choice.by_local_rank.emplace(local_rank, *streams).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", part,
          "' is not 0, 1 (stdout), 2 (stderr) or 3 (both), nor one "
          "of these after a local rank, as in 0:3,2:1"));
    }
  }
  return choice;
}

}  // namespace hawser::launch

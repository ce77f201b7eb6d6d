#include "collectives/gloo/rank_record.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "async/clock.h"
#include "async/status_macros.h"

namespace hawser::collectives {
namespace {

// Its length is a byte.
constexpr size_t kMaxItem = 255;

std::string KeyOf(int rank) { return absl::StrCat("address/", rank); }

template <class Bytes>
void AppendItem(const Bytes& item, std::string& text) {
  text.push_back(static_cast<char>(item.size()));
  text.append(item.begin(), item.end());
}

// Returns false if `text` is malformed.
template <class Bytes>
bool TakeItem(std::string_view& text, Bytes& item) {
  if (text.empty()) return false;
  const size_t bytes = static_cast<unsigned char>(text[0]);
  if (text.size() < 1 + bytes) return false;
  item.assign(text.begin() + 1,
              text.begin() + 1 + static_cast<std::ptrdiff_t>(bytes));
  text.remove_prefix(1 + bytes);
  return true;
}

std::string Encode(const RankRecord& record) {
  std::string text;
  AppendItem(record.machine, text);
  for (const PairAddresses& to : record.addresses) {
    AppendItem(to.data, text);
    AppendItem(to.control, text);
  }
  return text;
}

// Nullopt: malformed, or of a group of another size.
std::optional<RankRecord> Decode(std::string_view text, size_t size) {
  RankRecord record;
  record.addresses.resize(size);
  bool valid = TakeItem(text, record.machine);
  for (PairAddresses& to : record.addresses) {
    valid = valid && TakeItem(text, to.data) && TakeItem(text, to.control);
  }
  if (!valid || !text.empty()) return std::nullopt;
  return record;
}

}  // namespace

absl::StatusOr<std::vector<RankRecord>> ExchangeRecords(
    store::Store& store, int rank, const RankRecord& own,
    absl::Duration timeout) {
  if (own.machine.size() > kMaxItem) {
    return absl::InvalidArgumentError(
        absl::StrCat("the name of the machine has ", own.machine.size(),
                     " bytes, more than ", kMaxItem));
  }
  const async::MonotonicTime deadline =
      async::AddDelay(std::chrono::steady_clock::now(), timeout);
  RETURN_IF_ERROR(store.Set(KeyOf(rank), Encode(own), timeout));
  const auto size = static_cast<int>(own.addresses.size());
  std::vector<RankRecord> records(own.addresses.size());
  std::vector<int> missing;
  for (int other = 0; other < size; ++other) {
    if (other == rank) {
      records[static_cast<size_t>(other)] = own;
      continue;
    }
    const absl::Duration left =
        std::max(async::TimeBetween(std::chrono::steady_clock::now(), deadline),
                 absl::ZeroDuration());
    const absl::StatusOr<std::string> text = store.Get(KeyOf(other), left);
    if (absl::IsDeadlineExceeded(text.status())) {
      missing.push_back(other);
      continue;
    }
    RETURN_IF_ERROR(text.status());
    const std::optional<RankRecord> record =
        Decode(*text, own.addresses.size());
    if (!record.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", other, " has joined a group of another size"));
    }
    records[static_cast<size_t>(other)] = *record;
  }
  if (missing.empty()) return records;
  return absl::DeadlineExceededError(
      absl::StrCat("rank ", absl::StrJoin(missing, ", "),
                   missing.size() == 1 ? " has" : " have",
                   " not joined the group of ", size, " in time"));
}

}  // namespace hawser::collectives
